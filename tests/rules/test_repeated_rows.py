"""GM802: `repeat_interleave` without the total gives what it gives in eager mode, gradients included, in one graph."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed, noop
from tests.tools.observe import Scenario

MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, counts: torch.Tensor):
        y = self.lin(x)
        rows = REPEATED
        return rows * 2
"""
_CALLS = ["torch.ones(2, 3), torch.tensor([1, 2])", "torch.ones(2, 3), torch.tensor([0, 5])"]
_SCENARIOS = [Scenario(gradients="off"), Scenario(training=True, gradients="leaves")]


@pytest.mark.parametrize(
    ("repeated", "inputs"),
    [
        ("torch.repeat_interleave(y, counts, dim=0)", [*_CALLS, "torch.ones(2, 3), torch.tensor([0, 0])"]),
        ("y.repeat_interleave(repeats=counts, dim=-2)", _CALLS),
        ("y.repeat_interleave(counts)", ["torch.ones(2, 3), torch.arange(6)", "torch.ones(1, 3), torch.arange(3)"]),
        ("torch.repeat_interleave(y, counts, 1)", ["torch.ones(2, 3), torch.tensor([2])"]),
    ],
)
def test_rows_are_those_of_eager_mode(repeated: str, inputs: list[str]) -> None:
    before = MODEL.replace("REPEATED", repeated)
    after, _ = fixed(before, opaque=True)
    assert "_repeated_in_graph(" in after
    behaves(before, after, inputs)
    compiles(after, inputs, scenarios=_SCENARIOS)


def test_a_total_that_is_given_is_traced_as_it_is() -> None:
    noop(MODEL.replace("REPEATED", "torch.repeat_interleave(y, counts, dim=0, output_size=4)"), opaque=True)
