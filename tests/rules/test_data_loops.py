"""Loops whose number of rounds depends on data as one operator: what they compute, and what is left alone."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch
from torch.autograd import forward_ad

from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.statements import data_loops
from tests.tools.fixes import checked, fixed

_LOOPS = """
import torch
from torch import nn


def step(edges, kernel):
    return torch.where(nn.functional.conv2d(edges, kernel, padding=1) > 0.9, torch.ones_like(edges), edges)


def grow(x: torch.Tensor, kernel: torch.Tensor):
    edges = (x > 0.8).to(x.dtype) * 0.5 + (x > 1.5).to(x.dtype) * 0.5
    old = -torch.ones_like(edges)
    while ((old - edges).abs() != 0).any():
        old = edges
        edges = step(edges, kernel)
    return (edges == 1).to(x.dtype)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kernel", torch.ones(1, 1, 3, 3))

    def forward(self, x: torch.Tensor):
        y = x.tanh()
        while y.norm() > 1:
            y = y * 0.9
        return (grow(x, self.kernel) * x + y).sum()
"""
_GROWING = _LOOPS.replace("y = y * 0.9", "y = torch.cat([y, y]) * 0.1")
_EDIT = data_loops.edit
X = torch.randn(1, 1, 9, 9, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("loop_subject", None)
    torch._dynamo.reset()


def made(source: str) -> Any:
    module: Any = types.ModuleType("loop_subject")
    sys.modules["loop_subject"] = module
    text = fixed(source, opaque=True)[0]
    assert fixed(text, opaque=True)[0] == text
    exec(compile(text, "subject.py", "exec"), vars(module))
    return module.Model()


def gradient(call: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    x = x.clone().requires_grad_()
    found = call(x)
    found.backward()
    return found.detach(), x.grad


def test_a_loop_is_one_graph_for_every_number_of_rounds_with_the_gradients_of_eager_mode() -> None:
    model = made(_LOOPS)
    whole: Any = torch.compile(model, backend="aot_eager", fullgraph=True)
    for scale in (0.0, 1.0, 3.0):
        torch.testing.assert_close(gradient(whole, X * scale), gradient(model, X * scale))


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_derivative_in_forward_mode_comes_through_a_loop_that_breaks_the_graph_for_it() -> None:
    model, forward = made(_LOOPS), cast(Any, forward_ad)
    found = []
    for call in (model, torch.compile(model, backend="eager")):
        plain = call(X)
        with torch.no_grad(), forward.dual_level():
            both = forward.unpack_dual(call(forward.make_dual(X, X + 1)))
        assert both.tangent is not None
        found.append((plain.detach(), both.primal, both.tangent))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_loop_that_changes_a_shape_breaks_the_graph_as_before() -> None:
    model = made(_GROWING.replace(" * x + y).sum()", " * x).sum() + y.sum()"))
    whole: Any = torch.compile(model, backend="eager")
    for scale in (0.0, 3.0):
        torch.testing.assert_close(whole(X * scale), model(X * scale))


def outlined(source: str) -> Edit:
    """The edit for the last loop, which no finding tells of where there is none: other rules have reasons for it."""
    asked: list[Edit | NotProven] = []

    def edit(site: Site, loop: ast.While) -> Edit:
        try:
            asked.append(found := _EDIT(site, loop))
        except NotProven as reason:
            asked.append(reason)
            raise
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_loops, "edit", edit)
        checked(source, opaque=True)
    last = asked[-1]
    if isinstance(last, NotProven):
        raise last
    return last


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("y = y[y > 0.1]", "may depend on data"),
        ("y = y * torch.rand(1)", "may depend on data"),
        ("y = y * float(y.max())", "may depend on data"),
        ("y *= 0.9", "in place"),
        ("y *= 0.9\n            x *= 0.9", "changes `x` in place"),  # the first of them, whatever the order of a set
        ("y = y * self.kernel.mean()", "reads `self`"),
        ("y = y * 0.9\n            last = y", "used after it"),
        ("y = y * 0.9\n            if len(y) > 3:\n                break", "left in its middle"),
    ],
)
def test_what_an_operator_would_show_is_left_alone(body: str, because: str) -> None:
    source = _LOOPS.replace("y = y * 0.9", body).replace("+ y).sum()", "+ y).sum() + (last if x is None else 0)")
    with pytest.raises(NotProven, match=because):
        outlined(source)


def test_a_result_that_may_be_what_is_written_later_is_left_alone() -> None:
    with pytest.raises(NotProven, match="write in place"):
        outlined(_LOOPS.replace("y = x.tanh()", "y = x").replace("y = y * 0.9\n", "y = y * 0.9\n        x.add_(1)\n"))


def test_a_loop_beside_a_test_for_an_export_is_compiled_and_one_below_it_is_not() -> None:
    asks = "def is_exporting():\n    return MODES['export']\n\n\ndef step("
    beside = (
        "        if is_exporting():\n            y = y * 2\n        else:\n"
        "            while y.norm() > 1:\n                y = y * 0.9\n"
    )
    loop = "        while y.norm() > 1:\n            y = y * 0.9\n"
    source = _LOOPS.replace("def step(", asks)
    assert "_forward_rounds" in fixed(source.replace(loop, beside), opaque=True)[0]
    below = f"        if is_exporting():\n{loop.replace('        ', '            ')}"
    assert "_forward_rounds" not in fixed(source.replace(loop, below), opaque=True)[0]
