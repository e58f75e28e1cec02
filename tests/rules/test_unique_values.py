"""GM802: `unique` and `bincount` give what they give in eager mode, in one graph whatever the data."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, ids: torch.LongTensor):
        y = self.lin(x)
        BODY
"""
_CALLS = [
    "torch.ones(4, 3), torch.tensor([2, 0, 2, 2])",
    "torch.ones(4, 3), torch.tensor([1, 1, 0, 3])",
    "torch.ones(4, 3), torch.tensor([5, 5, 5, 5])",
]
_NONE = ["torch.ones(0, 3), torch.zeros(0, dtype=torch.long)"]
_SCENARIOS = [Scenario(gradients="off"), Scenario(training=True, gradients="leaves")]
_SUMS = "y.new_zeros(values.shape[0], 3).index_add(0, places, y)"


def _model(*lines: str) -> str:
    return MODEL.replace("BODY", "\n        ".join(lines))


@pytest.mark.parametrize(
    ("lines", "inputs"),
    [
        (["values, places = torch.unique(ids, return_inverse=True)", f"return {_SUMS}[places] + values.sum()"], _CALLS),
        (["values = ids.unique(dim=None, sorted=True)", "return y * values.numel(), values"], [*_CALLS, *_NONE]),
        (
            [
                "values, places, counts = torch.unique(ids, True, return_inverse=True, return_counts=True)",
                f"return ({_SUMS} / counts[:, None])[places]",
            ],
            _CALLS,
        ),
        (["rows = torch.unique(torch.stack([ids, ids]), dim=-1)", "return y.sum() * rows"], _CALLS),
        (
            ["_, counts = torch.unique_consecutive(ids, return_counts=True)", "return y[counts.cumsum(0) - 1]"],
            _CALLS,
        ),
        (["counts = torch.bincount(ids)", "return y * counts[ids][:, None]"], _CALLS),
        (["counts = ids.bincount(minlength=8)", "return y.sum() * counts"], [*_CALLS, *_NONE]),
        (["counts = torch.bincount(ids, y.detach()[:, 0], 2)", "return y.sum() + counts.sum()"], _CALLS),
        (["counts = torch.bincount(ids, x[:, 0].detach().double())", "return y.sum() + counts"], _CALLS),
    ],
)
def test_results_are_those_of_eager_mode(lines: list[str], inputs: list[str]) -> None:
    before = _model(*lines)
    after, _ = fixed(before, opaque=True, select=("GM802",))
    assert "_in_graph(" in after
    assert fixed(after, opaque=True)[0] == after
    behaves(before, after, inputs)
    compiles(after, inputs, scenarios=_SCENARIOS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor_gives_the_same_with_gradients() -> None:
    lines = [
        "values, places = torch.unique(ids, return_inverse=True)",
        f"return {_SUMS}[places] * torch.bincount(ids)[0]",
    ]
    after, _ = fixed(_model(*lines), opaque=True, select=("GM802",))
    scope: dict[str, Any] = {"__name__": "unique_subject"}
    exec(compile(after, "unique_subject.py", "exec"), scope)
    model = scope["Model"]()
    whole: Any = torch.compile(model, backend="inductor", fullgraph=True)
    for ids in (torch.tensor([2, 0, 2, 2]), torch.tensor([1, 1, 0, 3])):
        given = [torch.ones(4, 3, requires_grad=True) for _ in range(2)]
        expected, got = model(given[0], ids), whole(given[1], ids)
        torch.testing.assert_close(got, expected)
        expected.sum().backward()
        got.sum().backward()
        torch.testing.assert_close(given[1].grad, given[0].grad)


def test_a_check_of_labels_is_in_the_graph() -> None:
    lines = [
        "values = torch.unique(ids)",
        "if ((values != 0) & (values != 1)).any():",
        "    raise RuntimeError('labels other than 0 and 1')",
        "return y",
    ]
    after, _ = fixed(_model(*lines), opaque=True)
    compiles(after, ["torch.ones(2, 3), torch.tensor([1, 0])"], scenarios=_SCENARIOS)


def test_flags_without_names_are_left_alone() -> None:
    """`torch.unique_consecutive(x, False, True)` gives no counts, and nobody says that it stays so."""
    before = _model("values, counts = torch.unique_consecutive(ids, False, True)", "return y, values, counts")
    assert fixed(before, opaque=True, select=("GM802",))[0] == before


def test_what_needs_a_gradient_breaks_the_graph_as_before() -> None:
    """Eager mode raises where such a gradient is asked for."""
    before = _model("values = torch.unique(y)", "return (values * ids.sum()).sum()")
    after, _ = fixed(before, opaque=True, select=("GM802",))
    behaves(before, after, _CALLS[:1])


def test_a_module_with_a_function_of_that_name_is_told_apart() -> None:
    before = _model("lib = dict(a=torch)['a']", "counts = lib.bincount(ids)", "return y, counts")
    after, _ = fixed(before, opaque=True, select=("GM802",))
    assert after == before or "isinstance(lib, torch.Tensor)" in after
    behaves(before, after, _CALLS[:1])
    compiles(after, _CALLS[:1], strict=False)
