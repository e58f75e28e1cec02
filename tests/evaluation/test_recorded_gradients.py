"""Gradients of operators by recorded calls: what autograd kept of the call is taken, and freed with it."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.evaluation.recorded_fixes import OUTSIDE, Recorded, grad_of, model_with

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]

_BEFORE = OUTSIDE.format("x", "(x * 2).tanh()")
_LAYER = "self.inner = nn.Linear(4, 4)"
_BACKENDS = ("eager", "aot_eager", "inductor")


def _recorded(folder: Path, body: str = "y = outside(x * 3)\nreturn y + 1") -> Recorded:
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(folder, model_with(body, _BEFORE), shapes, gradients=True)
    assert "_recorded_function" in found.after, found.reasons
    return found


def _watched(model: torch.nn.Module, mark: Any = None) -> list[int]:
    """Counts the calls of what the operator runs."""
    held = vars(sys.modules[type(model).__module__])
    own, calls = held["outside"], [0]

    def outside(x: torch.Tensor) -> Any:
        calls[0] += 1
        return own(x) if mark is None else mark(own(x))

    disable: Any = torch.compiler.disable
    held["outside"] = disable(outside)
    return calls


def _x() -> torch.Tensor:
    return torch.linspace(-1, 1, 28).reshape(7, 4).requires_grad_()


def _compiled(model: torch.nn.Module, backend: str = "aot_eager") -> Any:
    torch.compiler.reset()
    return torch.compile(model, backend=backend, dynamic=False, fullgraph=True)


@pytest.mark.parametrize("backend", _BACKENDS)
def test_a_gradient_does_not_run_the_statement_again(tmp_path: Path, backend: str) -> None:
    model = _recorded(tmp_path).model()
    expected = _x()
    model(expected).square().sum().backward()
    calls, x = _watched(model), _x()
    compiled = _compiled(model, backend)
    for _ in range(2):
        x.grad = None
        compiled(x).square().sum().backward()
        assert torch.allclose(grad_of(x), grad_of(expected))
    assert calls == [2]


def test_a_second_gradient_runs_it_again(tmp_path: Path) -> None:
    model = _recorded(tmp_path).model()
    calls, x = _watched(model), _x()
    loss = _compiled(model, "eager")(x).square().sum()
    loss.backward(retain_graph=True)
    first = grad_of(x).clone()
    loss.backward()
    assert torch.allclose(grad_of(x), 2 * first)
    assert calls == [2]


class _Mark(torch.autograd.Function):
    """Holds an object as long as autograd holds this step."""

    made: weakref.ref[Any]

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.held = torch.nn.Module()
        _Mark.made = weakref.ref(ctx.held)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0]


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("backend", _BACKENDS)
def test_what_autograd_kept_is_freed_with_the_result(tmp_path: Path, backend: str, backward: bool) -> None:
    model = _recorded(tmp_path).model()
    _watched(model, _Mark.apply)
    compiled = _compiled(model, backend)
    loss = compiled(_x()).square().sum()
    assert _Mark.made() is not None
    if backward:
        loss.backward()
    del loss
    gc.collect()
    assert _Mark.made() is None


@pytest.mark.parametrize("backend", _BACKENDS)
def test_a_result_may_be_written_where_autograd_kept_it(tmp_path: Path, backend: str) -> None:
    """Inductor puts what follows into memory that its graph no longer reads."""
    body = "y = outside(x * 3)\nw = torch.eye(4) + 0.1\nz = y @ w\nz = z @ w\nz = z @ w\nreturn z @ w"
    model = _recorded(tmp_path, body).model()
    results = []
    for run in (model, _compiled(model, backend)):
        x = _x()
        run(x).square().sum().backward()
        results.append(grad_of(x))
    assert torch.allclose(results[0], results[1], rtol=1e-4)


@pytest.mark.parametrize("write", ["y.mul_(2)", "y[0] = 0.0", "y += x"])
def test_a_result_is_no_view_that_nobody_may_write(tmp_path: Path, write: str) -> None:
    found = Recorded(
        tmp_path,
        model_with(f"y = outside(x * 3)\n{write}\nreturn y", OUTSIDE.format("x", "x + 1")),
        lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)],
        gradients=True,
    )
    assert "_recorded_function" in found.after, found.reasons
    results = []
    for run in (found.model(), _compiled(found.model(), "eager")):
        x = _x()
        run(x).square().sum().backward()
        results.append(grad_of(x))
    assert torch.allclose(results[0], results[1])


def test_what_autograd_kept_is_left_where_its_memory_may_be_written(tmp_path: Path) -> None:
    """The graph computes a sine again for the gradient, and lets Inductor write into the memory of the first one."""
    body = "h = x[:1].expand(32, 4).sin()\ny = outside(h)\nreturn (y.cos() + 1) * y"
    shapes: Any = lambda: [(torch.randn(n, 4, requires_grad=True),) for n in (3, 5)]  # noqa: E731
    found = Recorded(tmp_path, model_with(body, OUTSIDE.format("x", "x * x")), shapes, gradients=True)
    model, expected, x = found.model(), _x(), _x()
    model(expected).sum().backward()
    with torch._functorch.config.patch(activation_memory_budget=0.0):
        _compiled(model, "inductor")(x).sum().backward()
    assert torch.allclose(grad_of(x), grad_of(expected), rtol=1e-4)


@pytest.mark.parametrize("backend", _BACKENDS)
def test_hooks_of_parameters_run_once(tmp_path: Path, backend: str) -> None:
    source = model_with("return outside(self.inner, x)", OUTSIDE.format("layer, x", "layer(x).tanh()"), _LAYER)
    shapes: Any = lambda: [(torch.randn(3, 4),), (torch.randn(5, 4),)]  # noqa: E731
    found = Recorded(tmp_path, source, shapes, gradients=True)
    assert "_held(" in found.after, found.reasons
    model: Any = found.model()
    weight = model.inner.weight
    handle = weight.register_hook(lambda gradient: gradient * 2)
    model(_x()).square().sum().backward()
    expected = grad_of(weight)
    for number in range(2):
        weight.grad = None
        _compiled(model, backend)(_x()).square().sum().backward()
        assert torch.allclose(grad_of(weight), expected / 2**number)
        if number == 0:
            handle.remove()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_parameter_of_two_layers_has_its_gradient_once(tmp_path: Path, backend: str) -> None:
    before = OUTSIDE.format("first, second, x", "second(first(x)).tanh()")
    init = f"{_LAYER}\n        self.outer = nn.Linear(4, 4)\n        self.outer.weight = self.inner.weight"
    shapes: Any = lambda: [(torch.randn(3, 4),), (torch.randn(5, 4),)]  # noqa: E731
    source = model_with("return outside(self.inner, self.outer, x)", before, init)
    found = Recorded(tmp_path, source, shapes, gradients=True)
    assert "_held(" in found.after, found.reasons
    model: Any = found.model()
    model(_x()).square().sum().backward()
    expected, model.inner.weight.grad = grad_of(model.inner.weight), None
    _compiled(model, backend)(_x()).square().sum().backward()
    assert torch.allclose(grad_of(model.inner.weight), expected)
