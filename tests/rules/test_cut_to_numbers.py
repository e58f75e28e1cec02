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
