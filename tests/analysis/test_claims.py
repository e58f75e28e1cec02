"""What is claimed of dtypes, derivatives and gradient mode is true, or becomes a condition."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

HUGE = 1e39
TWO = 2.0


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        {body}
        return x
"""


def _fixed(body: str) -> str:
    before = _MODEL.format(body=body.replace("\n", "\n        "))
    after, _ = fixed(before)
    assert after != before
    return after


# any() of uint8 is uint8


@pytest.mark.parametrize(
    "test", ["mask.any()", "torch.any(mask)", "mask.all()", "(mask & mask).any()", "mask.any(0).any()"]
)
def test_any_of_what_may_be_uint8_is_no_bool(test: str) -> None:
    assert f"{test} != 0" in _fixed(f"if {test}:\n    x = x * 2.0")
    assert f"{test} == 0" in _fixed(f"if not {test}:\n    x = x * 2.0")


def test_the_number_of_what_may_be_uint8_is_compared_with_zero() -> None:
    assert "where(torch.all(mask) == 0," in _fixed("if not torch.all(mask).item():\n    x = x * 2.0")


@pytest.mark.parametrize("test", ["(mask > 0).any()", "torch.isnan(x).all()", "mask.bool().any()", "mask.eq(1).any()"])
def test_any_of_a_comparison_is_bool(test: str) -> None:
    assert f"{test} != 0" not in _fixed(f"if {test}:\n    x = x * 2.0")


def test_a_condition_of_uint8_selects_as_eager_does() -> None:
    after = _fixed("if not mask.any():\n    x = x * 2.0")
    byte = "dtype=torch.uint8"
    compiles(after, [f"torch.ones(3), torch.zeros(3, {byte})", f"torch.ones(3), torch.full((3,), 3, {byte})"])


# functions of torch's parts, and of names that other classes have as well


@pytest.mark.parametrize(
    "test",
    [
        "(torch.linalg.norm(x, dim=-1) > 1).any()",
        "torch.linalg.vector_norm(x) > 1",
        "(torch.fft.rfft(x).abs() > 2).any()",
        "torch.det(torch.outer(x, x) + torch.eye(3)) < 0",
        "(torch.cross(x, x, dim=-1) != 0).any()",
        "F.pairwise_distance(x, x).max() > 1",
        "(x > 1).sum().item()",
        "not torch.count_nonzero(x).item()",
    ],
)
def test_a_branch_on_what_a_function_of_torch_gives_is_selected(test: str) -> None:
    after = _fixed(f"if {test}:\n    x = x * 2.0")
    compiles(after, ["torch.ones(3), torch.zeros(3)", "torch.zeros(3), torch.zeros(3)"])


def test_who_has_a_method_that_other_classes_have_is_no_tensor_for_it() -> None:
    before = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, flow):
        if flow > 0:
            x = x * 2.0
        return flow.inverse(x)
"""
    assert fixed(before)[0] == before
    assert fixed(before.replace("flow.inverse(x)", "flow.acosh() + x"))[0] != before


# derivatives


@pytest.mark.parametrize("value", ["x // 2", "torch.floor_divide(x, 2)", "(1 - x) // 2"])
def test_what_has_no_derivative_is_not_computed_where_eager_mode_skips_it(value: str) -> None:
    declined(_MODEL.format(body=f"if mask.any():\n            x = {value}"), because="has no derivative")
    assert "where(" in _fixed(f"if ({value} > 1).any():\n    x = x * 2.0")


@pytest.mark.parametrize(
    "value", ["x * 1e999", "x * HUGE", "x / 1e-50", "1e999 * x", "x / 1e-45", "x * -1e39", "2.0 / x"]
)
def test_a_factor_that_overflows_is_selected_inside(value: str) -> None:
    assert "torch.where(condition, x, 1.0)" in _fixed(f"if (mask > 0).any():\n    x = {value}")


@pytest.mark.parametrize("value", ["x * 1e30", "x * TWO", "x / 1e-30", "-2 * x", "x + 1e999", "x - HUGE"])
def test_a_finite_factor_keeps_zero_gradients(value: str) -> None:
    assert "torch.where(condition" not in _fixed(f"if (mask > 0).any():\n    x = {value}")


def test_gradients_of_a_skipped_overflow_are_those_of_eager_mode() -> None:
    after = _fixed("if (mask > 0).any():\n    x = x * 1e999")
    compiles(after, ["torch.ones(3), torch.zeros(3)"], scenarios=[Scenario(True, "leaves")])


# gradient mode

_ASKS = "torch.is_grad_enabled() or not x.requires_grad"


@pytest.mark.parametrize(
    "body",
    [
        "torch.set_grad_enabled(False)\n{}",
        "torch._C._set_grad_enabled(False)\n{}",
        "torch.autograd.set_grad_enabled(False)\n{}",
        "ctx = torch.no_grad()\nctx.__enter__()\n{}\nctx.__exit__(None, None, None)",
        "with torch.no_grad():\n    torch.set_grad_enabled(True)\n    {}",
        "with torch.no_grad():\n    with torch.enable_grad():\n        {}",
        "with torch.no_grad(), torch.enable_grad():\n    {}",
        "with torch.inference_mode(False):\n    {}",
        "with torch.set_grad_enabled(self.training):\n    {}",
    ],
)
def test_a_mode_that_nobody_knows_is_asked_for(body: str) -> None:
    depth = next(line.index("{}") for line in body.split("\n") if "{}" in line)
    statement = "if (mask > 0).any():\n    x = x.sqrt()".replace("\n", "\n" + " " * depth)
    after = _fixed(body.format(statement))
    assert _ASKS in after
    assert "torch.where(condition, x, 1.0)" in after, "gradients may be on"


@pytest.mark.parametrize(
    "around",
    [
        "with torch.no_grad():",
        "with torch.enable_grad(), torch.no_grad():",
        "with torch.no_grad(), torch.autocast('cpu'):",
        "with torch.autograd.no_grad():",
    ],
)
def test_gradients_that_are_off_need_no_inner_select(around: str) -> None:
    after = _fixed(f"{around}\n    if (mask > 0).any():\n        x = x.sqrt()")
    assert "not x.requires_grad" in after
    assert _ASKS not in after
    assert "torch.where(condition" not in after
