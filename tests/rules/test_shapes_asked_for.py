"""Selects of what raises for some shapes alone: the compile path asks for the shapes."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


def scaled(values, how="softmax"):
    if not torch.all((values >= 0) * (values <= 1)):
        values = values.sigmoid() if how == "sigmoid" else torch.softmax(values, dim=1)
    return values


class Model(nn.Module):
    def forward(self, x: torch.Tensor, how="softmax"):
        values = scaled(x, how)
        return values * 2
"""

_BRANCH = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x.mean()
        if x.sum() > 0:
            y = {value}
        return y * 2
"""


def test_a_dimension_that_a_skipped_branch_needs_is_asked_for() -> None:
    after, _ = fixed(_MODEL)
    assert "(how == 'sigmoid' or values.dim() > 1)" in after
    compiles(after, ["torch.rand(2, 3)", "torch.randn(2, 3)", "torch.tensor([[1.0, 1.0], [0.0, 0.0]])"])
    compiles(after, ["torch.rand(3), 'sigmoid'", "torch.randn(3), 'sigmoid'"])
    # No such dimension: eager mode gets to it with the second alone, and both run what it runs.
    compiles(after, ["torch.rand(3)", "torch.randn(3)"], strict=False)


def test_a_function_that_widens_half_precision_is_left_to_eager_mode_under_autocast() -> None:
    after, _ = fixed(_MODEL)
    assert "values.dtype == torch.float32" in after
    compiles(after, ["torch.randn(2, 3).bfloat16()", "torch.rand(2, 3).double()"], strict=False)


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        ("x[1].sum()", "x.dim() > 0 and x.shape[0] > 1"),
        ("x[:, -1].sum()", "x.dim() > 1 and x.shape[1] > 0"),
        ("x.sum(dim=(1, 2)).sum()", "x.dim() > 2"),
    ],
)
def test_what_would_be_out_of_range_is_asked_for(value: str, asked: str) -> None:
    after, _ = fixed(_BRANCH.replace("{value}", value))
    assert asked in after
    compiles(after, ["torch.ones(2, 3, 2)", "-torch.ones(2, 3, 2)"])
    compiles(after, ["-torch.ones(1)", "torch.ones(0)"], strict=False)


def test_sizes_that_a_skipped_branch_expands_are_asked_for() -> None:
    after, _ = fixed(_BRANCH.replace("y = x.mean()", "y = x[:1]").replace("{value}", "x[1].expand(y.shape)"))
    assert "x[1].dim() <= y.dim()" in after
    assert "all(m in (1, n) for m, n in zip(x[1].shape[::-1], y.shape[::-1]))" in after
    compiles(after, ["torch.ones(2, 3)", "-torch.ones(2, 3)"], scenarios=(Scenario(gradients="off"),))
    compiles(after, ["-torch.ones(2, 3, 2, 2)", "-torch.ones(2, 3, 2)", "-torch.ones(2)"], strict=False)


def test_an_element_that_a_skipped_branch_looks_for_is_asked_for() -> None:
    after, _ = fixed(_BRANCH.replace("{value}", "x.amax()"))
    assert "x.numel() > 0" in after
    compiles(after, ["-torch.ones(2)", "torch.ones(2)", "torch.ones(0)"], strict=False)


@pytest.mark.parametrize("value", ["x[x.long()].sum()", "x.view(2, -1).sum()", "x.sum(dim=(0, -1)).sum()"])
def test_what_no_shape_decides_is_declined(value: str) -> None:
    declined(_BRANCH.replace("{value}", value), because="")


def test_a_test_that_the_branch_decides_is_not_asked_above() -> None:
    source = _MODEL.replace("        values = values.s", '        how = "softmax"\n        values = values.s')
    declined(source, because="")
