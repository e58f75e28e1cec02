"""Reductions of what a mask chooses (GM501), and sizes from the list that a tensor was built from (GM402)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed
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
def test_a_list_that_another_name_may_change_is_copied_before(change: str) -> None:
    setup = _SETUP + "\n    def turned(self, sizes):\n        sizes.reverse()\n"
    before = "sizes = [x.shape[0] // 3, x.shape[0] - x.shape[0] // 3]\nalias = sizes\n"
    built, used = "lengths = torch.tensor(sizes)\n", "x = x.split(lengths.tolist())[0]"
    for steps in (before + built + change + "\n" + used, before + change + "\n" + built + used):
        source = embedded(steps, setup)
        after, _ = fixed(source, select=("GM402",))
        assert after != source
        compiles(after, ["torch.ones(5), torch.ones(1)"], scenarios=_OFF)


@pytest.mark.parametrize(
    ("returned", "inputs"),
    [
        (
            "y[mask].mean()",
            ["torch.randn(2, 3, 4), torch.tensor([[1, 0, 1], [0, 0, 1]]).bool()", "torch.randn(3), torch.ones(3) > 0"],
        ),
        ("y[mask].sum() - y[mask].mean() * 2", ["torch.randn(2, 3), torch.tensor([True, False])"]),
        ("y[mask].sum() * 2", ["torch.randn(2, 3), torch.tensor([True, False])", "torch.randn(2), torch.tensor(True)"]),
        (
            "-y[torch.arange(y.shape[0]), index][mask].mean()",
            ["torch.randn(3, 5), torch.tensor([True, False, True]), torch.tensor([4, 0, -1])"],
        ),
    ],
)
def test_a_parameter_named_a_mask_is_one_where_it_has_its_dtype(returned: str, inputs: list[str]) -> None:
    source = _GIVEN.format(returned=returned)
    after, _ = fixed(source)
    assert "is_compiling()" in after
    behaves(source, after, inputs)
    compiles(after, inputs)


def test_a_parameter_named_a_mask_may_be_anything() -> None:
    after, _ = fixed(_GIVEN.format(returned="y[mask].sum()"))
    for given in ("None", "torch.tensor([1, 0])", "torch.ones(2, 2) > 0", "[True, False]"):
        compiles(after, [f"torch.ones(2, 3), {given}"], strict=False)


def test_a_mask_that_chooses_twice_is_left_to_others() -> None:
    found = checked(_GIVEN.format(returned="(y[mask] - y[mask].mean()).abs()")).findings
    assert "GM501" not in [each.code for each in found]


_GIVEN = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, mask, index=None):
        y = torch.relu(x)
        return {returned}
"""


def test_long_keywords_of_a_call_are_broken_like_others() -> None:
    source = """
import torch
from torch import nn


def spread(inputs, unnormalized_widths, unnormalized_heights):
    return inputs * unnormalized_widths.exp() + unnormalized_heights


class Model(nn.Module):
    def forward(self, x: torch.Tensor, widths_and_heights_of_the_spline: torch.Tensor):
        inside_interval_mask = (x >= -1) & (x <= 1)
        outputs = torch.zeros_like(x)
        outputs[inside_interval_mask] = spread(
            inputs=x[inside_interval_mask],
            unnormalized_widths=widths_and_heights_of_the_spline[inside_interval_mask],
            unnormalized_heights=widths_and_heights_of_the_spline[inside_interval_mask],
        )
        return outputs
"""
    after, result = fixed(source)
    assert result.fixes
    assert "unnormalized_widths=_rows_under(inside_interval_mask, " in after
