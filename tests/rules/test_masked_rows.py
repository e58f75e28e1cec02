"""Reductions of what a mask chooses (GM501), and sizes from the list that a tensor was built from (GM503)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, embedded, fixed
from tests.tools.observe import Scenario

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, other: torch.Tensor):
        mask = x > 0
        ...
        return x
"""
_OFF = [Scenario(gradients="off")]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_mean_of_many_half_precision_numbers_does_not_overflow(dtype: str) -> None:
    source = embedded("x = x[mask].mean()", _SETUP)
    after, _ = fixed(source, select=("GM501",))
    large = f"torch.full((4000,), 60.0, dtype=torch.{dtype}), torch.ones(1)"
    behaves(source, after, [large], scenarios=FEW_SCENARIOS)
    compiles(after, [large], scenarios=_OFF)


@pytest.mark.parametrize("given", ["torch.ones(4).long()", "torch.ones(3, dtype=torch.float64)", "torch.ones(2, 1)"])
def test_a_mean_that_is_not_as_the_conditions_say_is_that_of_eager_mode(given: str) -> None:
    source = embedded("x = x.masked_select(other).mean()", _SETUP)
    after, _ = fixed(source, select=("GM501",))
    compiles(after, [f"{given}, torch.tensor([True, False, True, True])[: {given}.shape[0]]"], strict=False)


def test_a_sum_of_masked_select_broadcasts_as_the_select_does() -> None:
    after, _ = fixed(embedded("x = x.exp().masked_select(other).sum()", _SETUP), select=("GM501",))
    assert "torch.where(other, x.exp(), 0).sum()" in after
    compiles(after, ["torch.ones(2, 3), torch.tensor([[True], [False]])"])


@pytest.mark.parametrize(
    "change",
    [
        "alias.reverse()",
        "alias[0], alias[1] = alias[1], alias[0]",
        "held = [alias]\nheld[0].reverse()",
        "self.turned(alias)",
    ],
)
def test_a_list_that_another_name_may_change_gives_no_sizes(change: str) -> None:
    setup = _SETUP + "\n    def turned(self, sizes):\n        sizes.reverse()\n"
    before = "sizes = [x.shape[0] // 3, x.shape[0] - x.shape[0] // 3]\nalias = sizes\n"
    built, used = "lengths = torch.tensor(sizes)\n", "x = x.split(lengths.tolist())[0]"
    declined(embedded(before + built + change + "\n" + used, setup), "may change `sizes`", select=("GM503",))
    kept = embedded(before + change + "\n" + built + used, setup)
    after, _ = fixed(kept, select=("GM503",))
    assert after != kept
    compiles(after, ["torch.ones(5), torch.ones(1)"], scenarios=_OFF)
