"""Numbers read within an expression (GM401): what their tensors may be, and what keeps the author's statement."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario
from tests.tools.versions import NEWER_TORCH

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("top", torch.tensor(3.0))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x, y=None):
        {body}
"""
_SCENARIOS = (Scenario(False, "off"), Scenario(True, "leaves"), Scenario(True, "inner", "one nan"))


def model(body: str) -> str:
    return _MODEL.format(body="\n        ".join(body.strip("\n").split("\n")))


def kept(body: str) -> str:
    """The module after GM401 alone, which has to have kept a tensor."""
    after, _ = fixed(model(body), select=("GM401",))
    assert "is_compiling()" in after, after
    return after


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("return x / x.max().item()", "torch.rand(3) + 1"),
        ("return x / max((x > 0).sum().item(), 1)", "torch.rand(3) - 0.5"),
        ("return x.sum() / y.sum().item()", "(torch.rand(3), torch.ones(3, dtype=torch.bool))"),
        ("return x.sum() / y.sum().item()", "(torch.rand(3), torch.ones(3))"),
        ("return x * self.top.item() - self.weight", "torch.rand(3)"),
        ("return torch.clamp(x, x.mean().item(), self.top.item())", "torch.randn(3)"),
        ("return x.clamp(min=y.item())", "(torch.randn(3), torch.tensor(0.5))"),
        ("x = x * 1\nx *= float(x.max())\nreturn x", "torch.randn(3)"),
        ("return x.masked_fill(x > 0, x.min().item())", "torch.randn(3)"),
        ("return x / torch.trace(x).item()", "torch.rand(3, 3)"),
        ("return 2 * (x - y.item()) + x.amin().item() * x", "(torch.randn(3), torch.tensor(2.0))"),
        ("return x / max(x.max().item(), 1e-6)", "torch.zeros(3)"),
    ],
)
def test_a_tensor_takes_the_place_of_the_number(body: str, given: str) -> None:
    after = kept(body)
    behaves(model(body), after, [given], scenarios=FEW_SCENARIOS[:3])
    if not (NEWER_TORCH and "clamp" in body):  # torch 2.15 gives a NaN bound another gradient if it is a tensor
        compiles(after, [given], scenarios=_SCENARIOS)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        # A 0-dim tensor would widen what it is multiplied with, or give floats for integers.
        ("return x.sum() * y.item()", "(torch.rand(3), torch.tensor(2.0, dtype=torch.float64))"),
        ("return x.sum() * y.item()", "(torch.rand(3).half(), torch.tensor(2.0))"),
        ("return x * y.item()", "(torch.arange(3), torch.tensor(2.5, dtype=torch.float64))"),
        ("return x * y.item()", "(torch.arange(3, dtype=torch.int8), torch.tensor(200))"),
        ("return x.clamp(max=y.item())", "(torch.arange(3), torch.tensor(1.5))"),
        ("return x * y.item()", "(torch.rand(3), torch.tensor([2.0]))"),
        ("return x * y.item()", "(torch.rand(3), torch.ones(1, 1))"),
        # 1e-8 is 0 in half precision.
        ("return x / max(x.max().item(), 1e-8)", "torch.zeros(3, dtype=torch.float16)"),
        (
            "assert x.is_floating_point()\nn = max(x.max().item(), 1e-8)\nreturn x / n",
            "torch.zeros(3, dtype=torch.float16)",
        ),
    ],
)
def test_what_is_not_proven_is_asked_for(body: str, given: str) -> None:
    after = kept(body)
    behaves(model(body), after, [given], scenarios=FEW_SCENARIOS[:1])
    compiles(after, [given], strict=False)


def test_autocast_adds_half_precision_up_in_float32() -> None:
    body = "with torch.autocast('cpu', dtype=torch.bfloat16):\n    return x.max() / y.sum().item()"
    after = kept(body)
    compiles(after, ["(torch.rand(3).bfloat16(), torch.ones(3).bfloat16())"], strict=False)
    compiles(after, ["(torch.rand(3), torch.ones(3))"])
    body = "with torch.autocast('cpu', dtype=torch.bfloat16):\n    return y.max() / torch.trace(x).item()"
    compiles(kept(body), ["(torch.rand(3, 3).bfloat16(), torch.ones(3).bfloat16())"], strict=False)


def test_a_property_that_does_more_than_read_is_asked_once() -> None:
    loud = "\n    @property\n    def loud(self):\n        self.asked = self.asked + 1\n        return self.top\n"
    source = model("return x * self.loud.item()") + loud
    assert "is_compiling()" not in fixed(source, select=("GM401",))[0]


@pytest.mark.parametrize("given", ["(numpy.ones(3), numpy.float64(2))", "(torch.rand(3), numpy.float32(2))"])
def test_a_number_of_numpy_is_read_as_before(given: str) -> None:
    source = "import numpy\n" + model("return x * y.item()")
    after, _ = fixed(source, select=("GM401",))
    assert "isinstance(y, torch.Tensor)" in after
    compiles(after, [given], strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "top = x.amax().detach()\nz = top.item() * top.mul_(3)\nreturn x * z",
        "top = x.amax().detach()\nz = x * top.item()\ntop.add_(1)\nreturn z * top",
        "z = x * self.top.item()\nself.top.mul_(2)\nreturn z",
    ],
)
def test_a_number_is_what_it_was_when_its_tensor_is_changed(body: str) -> None:
    source = model(body)
    after, _ = fixed(source, select=("GM401",))
    behaves(source, after, ["torch.tensor([1.0, 4.0])"], scenarios=FEW_SCENARIOS[:2])
    compiles(after, ["torch.tensor([1.0, 4.0])"], scenarios=_SCENARIOS, strict=False)
    if "is_compiling()" in after:
        assert ".clone()" in after


@pytest.mark.parametrize(
    "body",
    [
        "z = x * self.top.item()\nwith torch.no_grad():\n    self.top.add_(1)\nreturn z * self.weight",
        "n = self.top.item()\nz = self.weight.float() * n\nself.top += 1\nreturn z + x",
        "z = self.weight * y.item()\ny.mul_(2)\nreturn z + x",
    ],
)
def test_torch_keeps_what_is_written_for_the_gradient(body: str) -> None:
    after, _ = fixed(model(body), select=("GM401",))
    calls = ["(torch.ones(3), torch.tensor(3.0))"] * 3
    compiles(after, calls, scenarios=(Scenario(True, "leaves"), Scenario(True, "parameters")), strict=False)
    if "is_compiling()" in after:
        assert "not torch.is_grad_enabled()" in after
        compiles(after, calls, scenarios=(Scenario(False, "off"),))


def test_no_gradient_flows_through_a_number() -> None:
    after = kept("return x * x.max().item()")
    assert "x.max().detach()" in after
    compiles(after, ["torch.tensor([1.0, 2.0])"], scenarios=(Scenario(True, "leaves"),))


@pytest.mark.parametrize(
    "body",
    [
        "return torch.clamp(x, 0.0, x.mean().item())",  # two tensors or two numbers
        "return x * y[0].item()",  # a list, perhaps
        "return x ** x.max().item()",
        "return torch.add(x, 1, alpha=y.item())",
        "return [x * each.item() for each in y]",
        "return x * y.item() if self.training else x",  # asked where it does not run
        "return x.view(y.item())",
        "return x.max().item() / y.item()",
        "return x * int(x.max())",
    ],
)
def test_other_uses_need_the_number(body: str) -> None:
    assert "is_compiling()" not in fixed(model(body), select=("GM401",))[0]
