"""What is cut to a number that only the data tells (GM802), where a gradient asks how long it is."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        n = int((x > 0).sum())
        return {cut} + x
"""


@pytest.mark.parametrize(
    ("cut", "asked"),
    [
        ("x.flatten()[:n].cumsum(0).sum()", True),
        ("x.flatten()[: n // 2 + 1].prod()", True),
        ("x.flatten().narrow(0, 0, n).cumsum(0).sum()", True),
        ("x.flatten()[:n].exp().sum()", True),
        ("x.flatten()[: -(-n // 2)].exp().sum()", True),
        ("x.flatten()[:n].exp().sum() * torch.ones(n).sum()", False),
        ("torch.full((n,), 3, dtype=torch.long).cumsum(0).sum()", False),
        ("torch.full((4,), 3)[:n].sum()", True),
        ("torch.arange(9)[:n].sum()", False),
        ("x.new_ones(n).cumsum(0).sum() * x.flatten()[:n].sum()", True),
    ],
)
def test_a_gradient_of_what_is_cut_to_a_number_is_asked_for(cut: str, asked: bool) -> None:
    after = fixed(_MODEL.format(cut=cut), opaque=True, select=("GM802",))[0]
    assert "_integer_in_graph(" in after
    assert ("not torch.is_grad_enabled()" in after) is asked
    compiles(after, ["torch.ones(3, 4)"], scenarios=[Scenario(False, "off")])
    compiles(after, ["torch.ones(3, 4)"], strict=not asked, scenarios=[Scenario(True, "leaves")])


def test_statements_with_such_a_gradient_become_one_operator() -> None:
    after = fixed(_MODEL.format(cut="x.flatten()[:n].cumsum(0).sum()"), opaque=True)[0]
    compiles(after, ["torch.ones(3, 4)", "torch.randn(2, 3)"], scenarios=[Scenario(True, "leaves")], strict=False)


@pytest.mark.parametrize("cut", ["x.flatten()[:n].exp().sum() * torch.ones(n).sum()", "x.flatten()[:n].exp().sum()"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_compiles_what_is_cut_to_a_number_and_its_gradient(cut: str) -> None:
    after = fixed(_MODEL.format(cut=cut), opaque=True, select=("GM802",))[0]
    scenarios = [Scenario(True, "leaves")]
    assert not list(compiled_differences(after, ["torch.randn(3, 4)"], scenarios=scenarios, backend="inductor"))


def test_a_slice_that_begins_at_a_size_stays_outside_of_the_graph() -> None:
    source = _MODEL.format(cut="x.flatten()[n:].sum() * torch.zeros(n).sum()")
    declined(source, "begins at a number that only the data tells", select=("GM802",), opaque=True)


_BATCH = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor, scale: torch.Tensor):
        {before}
        n = int(lengths.max())
        {between}
        y = x[:, :n]
        return y.exp().sum() * scale
"""
_ASKED = "not (torch.is_grad_enabled() and x.requires_grad)"
_CALLS = ["torch.randn(2, 5), torch.tensor([2, 3]), torch.ones(1)"]
_WHOLE = [f"torch.arange(10).reshape(2, 5), torch.tensor([{lengths}]), torch.ones(1)" for lengths in ("2, 3", "4, 1")]


def test_a_batch_that_needs_no_gradient_is_cut_in_training_too() -> None:
    after = fixed(_BATCH.format(before="pass", between="pass"), opaque=True, select=("GM802",))[0]
    assert f"            and isinstance(x, torch.Tensor)\n            and {_ASKED}\n        ):" in after
    compiles(after, _WHOLE, scenarios=[Scenario(True, "leaves")])
    compiles(after, _CALLS, strict=False, scenarios=[Scenario(True, "leaves")])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_compiles_a_batch_that_needs_no_gradient() -> None:
    after = fixed(_BATCH.format(before="pass", between="pass"), opaque=True, select=("GM802",))[0]
    for calls in (_CALLS, _WHOLE):
        scenarios = [Scenario(True, "off"), Scenario(True, "leaves")]
        assert not list(compiled_differences(after, calls, scenarios=scenarios, backend="inductor"))


@pytest.mark.parametrize(
    ("before", "between", "asked"),
    [
        ("x = x * 2", "pass", _ASKED),
        ("pass", "x = x * scale", "not torch.is_grad_enabled()"),
        ("z = x", "x = z.exp()", "not torch.is_grad_enabled()"),
        ("pass", "z = x[:, :n].exp()", _ASKED),
        ("pass", "self.x = x; x = self.x[:, :n].exp()", "not torch.is_grad_enabled()"),
    ],
)
def test_what_is_cut_is_asked_where_its_name_holds_the_same(before: str, between: str, asked: str) -> None:
    after = fixed(_BATCH.format(before=before, between=between), opaque=True, select=("GM802",))[0]
    assert asked in after
    assert (_ASKED in after) is (asked == _ASKED)


def test_a_name_that_only_a_branch_binds_is_not_asked_for() -> None:
    source = _BATCH.format(before="z = x", between="pass").replace("z = x", "if scale.dim():\n            z = x")
    after = fixed(source.replace("x[:, :n]", "z[:, :n]"), opaque=True, select=("GM802",))[0]
    assert "not torch.is_grad_enabled()" in after


def test_a_slice_in_a_loop_is_not_asked_for_before_it() -> None:
    body = "for part in (x, x * scale):\n            n = int(lengths.max())\n            x = part + x[:, :n].sum()"
    source = _BATCH.format(before="pass", between="pass").replace("n = int(lengths.max())\n", f"{body}\n")
    text = fixed(source.replace("        y = x[:, :n]\n", "        y = x\n"), opaque=True, select=("GM802",))[0]
    assert _ASKED not in text


_TABLE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(6, 1, 3)), nn.Parameter(torch.randn(1, 4, 2))])

    def forward(self, positions: torch.Tensor):
        count = positions.shape[0]
        parts = [weight.expand((count, 6, 4) + weight.shape[-1:]) for weight in self.weights]
        last = positions.max().item()
        columns = -(-(last + 1) // 4)
        table = torch.cat([part[:, :columns] for part in parts], dim=-1)
        table = table.reshape(count, -1, table.shape[-1])
        return torch.stack([torch.index_select(table[i], 0, positions[i]) for i in range(count)]) * 2
"""


def test_a_table_is_cut_to_a_maximum_where_no_gradient_is_made() -> None:
    after = fixed(_TABLE, opaque=True)[0]
    assert "last = _number_in_graph(positions.max())" in after
    calls = ["torch.tensor([[0, 1, 2], [5, 3, 9]])", "torch.zeros(2, 3, dtype=torch.long)"]
    compiles(after, calls, scenarios=[Scenario(False, "off")])
    assert "not torch.is_grad_enabled()" in after.partition("last = _number_in_graph")[0]
    compiles(after, calls[:1], strict=False, scenarios=[Scenario(True, "leaves")])
