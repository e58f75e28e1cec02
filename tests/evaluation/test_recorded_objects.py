"""Operators by recorded calls: gradients, objects, random numbers, and what changes unseen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.evaluation.recorded_fixes import (
    BACKENDS,
    BOX,
    OUTSIDE,
    Recorded,
    grad_of,
    model_with,
    one_graph,
    recorded,
)

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]


@pytest.mark.parametrize(
    "write", ["model.seen.data.add_(1)", "model.rows.append(x)", "model.inner[0].weight.data.mul_(2)"]
)
def test_a_hidden_change_is_left_alone(tmp_path: Path, write: str) -> None:
    """Neither a version nor an attribute tells of it."""
    before = f"\n@torch.compiler.disable\ndef outside(model, x):\n    {write}\n    return x * 2\n"
    init = "self.register_buffer('seen', torch.zeros(2)); self.rows = []; self.inner = nn.Sequential(nn.Linear(2, 2))"
    found = recorded(tmp_path, "y = outside(self, x)\nreturn y + 1", [(3, 4), (5, 6)], before=before, init=init)
    assert found.after == found.before
    assert "changed the instance" in found.reasons


def test_what_gives_nothing_is_left_alone(tmp_path: Path) -> None:
    before = "\nseen = []\n@torch.compiler.disable\ndef outside(x):\n    seen.append(len(x))\n"
    found = recorded(tmp_path, "outside(x)\nreturn x + 1", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before


def test_gradients_are_those_of_eager_mode(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "torch.nn.functional.dropout(x, 0.5).exp().sum(0)")
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 6, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("y = outside(x * 2)\nreturn y + 1", before), shapes, gradients=True)
    assert "_recorded_function" in found.after
    for backend in BACKENDS:
        grads = []
        for compiled in (False, True):
            x = torch.randn(7, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
            torch.manual_seed(5)
            made = one_graph(found.model(), x, backend=backend) if compiled else found.model()(x)
            made.sum().backward()
            grads.append(grad_of(x))
        assert torch.allclose(grads[0], grads[1]), backend
    with torch.no_grad():
        x = torch.randn(7, 8)
        assert one_graph(found.model(), x).shape == (8,)


_NET = """
        return y + 1

    def run(self, x):
        return self.net(x) * self.scale
"""


@pytest.mark.parametrize("called", ["outside(self.net, x) * self.scale", "outside(self.run, x)", "outer(self, x)"])
def test_parameters_get_their_gradients(tmp_path: Path, called: str) -> None:
    before = "\n@torch.compiler.disable\ndef outside(run, x):\n    return run(x).exp()\n"
    before += "\n@torch.compiler.disable\ndef outer(model, x):\n    return model.run(x).exp()\n"
    init = "self.net = nn.Linear(4, 4); self.scale = nn.Parameter(torch.ones(4))"
    source = model_with(f"y = {called}", before, init).rstrip() + _NET
    shapes: Any = lambda: [(torch.randn(3, 4),), (torch.randn(5, 4),)]  # noqa: E731
    found = Recorded(tmp_path, source, shapes, gradients=True)
    assert "_recorded_function" in found.after, found.reasons
    x = torch.randn(7, 4)
    models = found.model(), found.model()
    models[0](x).sum().backward()
    one_graph(models[1], x).sum().backward()
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.allclose(grad_of(one), grad_of(other))


def test_an_instance_that_changes_before_is_left_alone(tmp_path: Path) -> None:
    """Dynamo sets attributes when the graph has run: an operator would read what was there before."""
    before = "\n@torch.compiler.disable\ndef outside(model, x):\n    return x * model.factor\n"
    forward = "self.factor = len(x)\ny = outside(self, x)\nreturn y + 1"
    found = recorded(tmp_path, forward, [(3, 4), (5, 6)], before=before, init="self.factor = 1")
    assert found.after == found.before
    assert "would see what was before" in found.reasons


def test_numbers_of_numpy_are_no_constants(tmp_path: Path) -> None:
    """Dynamo would hand the operator the value of the first call, again and again."""
    before = """
@torch.compiler.disable
def outside(seed, x):
    return x * int(seed)
def inner(seed, x):
    y = outside(seed, x)
    return y + 1
"""
    found = recorded(tmp_path, "return inner(np.int64(len(x)) + 0, x)", [(3, 4), (5, 6)], before=before)
    model = torch.compile(found.model(), backend="aot_eager", dynamic=True)
    for rows in (3, 5, 6, 7):
        x = torch.randn(rows, 4)
        assert torch.equal(model(x), found.model()(x)), rows


@pytest.mark.parametrize("given", ["holder", "np.int64(3)", "torch.tensor(3)"])
def test_another_kind_of_object_takes_the_author_s_path(tmp_path: Path, given: str) -> None:
    before = """
class Holder:
    def __int__(self):
        return 2
holder = Holder()
@torch.compiler.disable
def outside(seed, x):
    return x * int(seed)
def inner(seed, x):
    y = outside(seed, x)
    return y + 1
given = holder
"""
    found = recorded(tmp_path, "return inner(given, x)", [(3, 4), (5, 6)], before=before)
    assert "_y_operator" in found.after, found.reasons
    model = found.model()
    module = sys.modules[type(model).__module__]
    torch.compiler.reset()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    for each in (given, "holder", "np.int64(5)", "torch.tensor(5)", "np.int64(6)", "torch.tensor(6)"):
        module.given = eval(each, vars(module))  # type: ignore[attr-defined]
        x = torch.randn(3, 4)
        assert torch.equal(compiled(x), model(x)), each


def test_an_object_that_the_graph_makes_takes_the_author_s_path(tmp_path: Path) -> None:
    """While Dynamo traces, such an object has no attributes yet."""
    before = """
class Holder:
    factor = 0
    def __init__(self, factor):
        self.factor = factor
    @torch.compiler.disable
    def outside(self, x):
        return x * self.factor
    def inner(self, x):
        y = self.outside(x)
        return y + 1
"""
    found = recorded(tmp_path, "z = Holder(3)\nx = x + 1\nreturn z.inner(x)", [(3, 4), (5, 6)], before=before)
    x = torch.randn(5, 6)
    torch.compiler.reset()
    assert torch.equal(torch.compile(found.model(), backend="aot_eager")(x), found.model()(x))


def test_an_object_that_changes_before_is_left_alone(tmp_path: Path) -> None:
    before = """
class Holder:
    factor = 1
holder = Holder()
@torch.compiler.disable
def outside(holder, x):
    return x * holder.factor
def inner(holder, x):
    holder.factor = len(x)
    y = outside(holder, x)
    return y + 1
"""
    found = recorded(tmp_path, "return inner(holder, x)", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before, found.reasons


def test_what_asks_autograd_is_left_alone(tmp_path: Path) -> None:
    """Inside of an operator what it is given has no history."""
    before = "\n@torch.compiler.disable\ndef outside(y, x):\n"
    before += "    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]\n"
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("y = x * x\nz = outside(y, x)\nreturn z + 1", before), shapes, gradients=True)
    assert found.after == found.before
    assert "asks autograd" in found.reasons


def test_a_parameter_that_is_not_given_raises(tmp_path: Path) -> None:
    """No recorded call told of it."""
    before = "\nhidden = torch.ones(4)\n" + OUTSIDE.format("x", "x * hidden")
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("y = outside(x)\nreturn y + 1", before), shapes, gradients=True)
    model = found.model()
    sys.modules[type(model).__module__].hidden.requires_grad_()
    with pytest.raises(RuntimeError, match="not given"):
        one_graph(model, torch.randn(3, 4, requires_grad=True)).sum().backward()


_HIDDEN = "\nhidden = torch.nn.Parameter(torch.ones(4))\n" + OUTSIDE.format("x", "x * hidden")


def test_a_gradient_of_what_is_not_given_is_left_alone(tmp_path: Path) -> None:
    """Nothing that goes in needs one: the operator would not know that its result does."""
    forward = "y = outside(x)\nreturn y + 1"
    found = recorded(tmp_path, forward, [(3, 4), (5, 4)], before=_HIDDEN, gradients=True)
    assert found.after == found.before
    assert "needs a gradient, and nothing that goes into it does" in found.reasons


def test_a_method_of_an_object_that_may_hold_what_goes_in_is_left_alone(tmp_path: Path) -> None:
    """The operator is given other tensors than those which the object holds."""
    before = """
class Line:
    def __init__(self, slope):
        self.slope = slope

    def at(self, x):
        return x * self.slope


@torch.compiler.disable
def outside(f, x):
    return f(x)


def run(f, x):
    y = outside(f, x)
    return y + 1
"""
    init = "self.line = Line(torch.ones(4, requires_grad=True))"
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("return run(self.line.at, x)", before, init), shapes, gradients=True)
    assert "`f` is bound to an object that may hold what needs a gradient" in found.reasons
    assert "_y_operator" not in found.after


def test_an_object_that_holds_tensors_in_a_tuple_is_left_alone(tmp_path: Path) -> None:
    before = """
@torch.compiler.disable
def outside(slopes, x):
    return x * slopes[0]


class Line:
    def __init__(self, slope):
        self.slopes = (slope,)

    def run(self, x):
        y = outside(self.slopes, x)
        return y + 1
"""
    init = "self.line = Line(torch.ones(4, requires_grad=True))"
    forward = "z = self.line.run(x)\nreturn z + 1"
    found = recorded(tmp_path, forward, [(3, 4), (5, 4)], before=before, init=init, gradients=True)
    assert "`self` is no module, and may hold what needs a gradient" in found.reasons
    model: Any = found.model()
    torch.compiler.reset()
    compiled: Any = torch.compile(model, backend="aot_eager")
    compiled(torch.ones(7, 4)).sum().backward()
    assert torch.equal(grad_of(model.line.slopes[0]), torch.full((4,), 7.0))


def test_a_result_that_is_written_later_has_its_gradient(tmp_path: Path) -> None:
    """The operator compares what a gradient gives it with what it gave."""
    before = OUTSIDE.format("x", "x.sin()")
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(
        tmp_path, model_with("y = outside(x * 2)\ny.mul_(3)\nreturn y + 1", before), shapes, gradients=True
    )
    assert "_recorded_function" in found.after, found.reasons
    for backend in ("eager", "aot_eager"):
        x, z = (torch.ones(7, 4, requires_grad=True) for _ in range(2))
        one_graph(found.model(), x, backend=backend).sum().backward()
        found.model()(z).sum().backward()
        assert torch.allclose(grad_of(x), grad_of(z)), backend


def test_a_call_that_needs_no_gradient_of_what_is_given_takes_the_author_s_path(tmp_path: Path) -> None:
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("y = outside(x)\nreturn y + 1", _HIDDEN), shapes, gradients=True)
    assert "_recorded_function" in found.after, found.reasons
    model = found.model()
    torch.compiler.reset()
    torch.compile(model, backend="aot_eager")(torch.ones(3, 4)).sum().backward()
    assert torch.equal(grad_of(sys.modules[type(model).__module__].hidden), torch.full((4,), 3.0))


def test_results_without_gradient_stay_without(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "torch.from_numpy(np.cumsum(x.detach().numpy(), 0))")
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 6, requires_grad=True),)]  # noqa: E731
    found = Recorded(tmp_path, model_with("y = outside(x)\nreturn y * x", before), shapes, gradients=True)
    x, z = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    one_graph(found.model(), x).sum().backward()
    found.model()(z).sum().backward()
    assert torch.equal(grad_of(x), grad_of(z))


def test_recorded_without_gradients_is_for_calls_without(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x.exp()")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4), (5, 6)], before=before)
    x, z = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    torch.compiler.reset()
    torch.compile(found.model(), backend="aot_eager")(x).sum().backward()  # by the author's own path
    found.model()(z).sum().backward()
    assert torch.equal(grad_of(x), grad_of(z))


def test_numpy_draws_what_it_draws_in_eager_mode(tmp_path: Path) -> None:
    forward = "a = np.random.permutation(len(x))\nb = np.random.permutation(len(x))\nreturn x[a] - x[b]"
    found = recorded(tmp_path, forward, [(5,), (7,)])
    assert found.after.count("_recorded_operator(_") == 2, found.after
    x = torch.randn(9)
    np.random.seed(3)
    wanted = [found.model()(x) for _ in range(3)]
    np.random.seed(3)
    torch.compiler.reset()
    with torch._dynamo.error_on_graph_break(True):
        compiled = torch.compile(found.model(), backend="inductor", dynamic=False)
        assert all(torch.equal(each, compiled(x)) for each in wanted)


def test_an_instance_that_changes_is_left_alone(tmp_path: Path) -> None:
    before = "\n@torch.compiler.disable\ndef outside(model, x):\n    model.last = x\n    return x * 2\n"
    found = recorded(tmp_path, "y = outside(self, x)\nreturn y + 1", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before
    assert "changed the instance" in found.reasons


def test_a_call_takes_in_what_its_callee_cannot_return(tmp_path: Path) -> None:
    found = recorded(tmp_path, "y = inner(x).value\nreturn y + 1", [(3, 4), (5, 6)], before=BOX)
    assert "y = inner(x).value\n    return [y]" in found.after, found.reasons
    x = torch.randn(7, 8)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_all_calls_that_lead_to_a_break_are_taken(tmp_path: Path) -> None:
    found = recorded(tmp_path, "y = inner(x).value\nz = inner(x + 1).value\nreturn y + z", [(3, 4), (5, 6)], before=BOX)
    assert found.after.count("@_recorded_operator(") == 2, found.reasons
    x = torch.randn(7, 8)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_a_call_that_runs_layers_is_left_alone(tmp_path: Path) -> None:
    """An operator of it would hide the layers from the compiler."""
    before = BOX.replace("def inner(x):", "def inner(net, x):\n    x = net(x)")
    init = "self.net = nn.Linear(4, 4)"
    found = recorded(tmp_path, "y = inner(self.net, x).value\nreturn y + 1", [(3, 4), (5, 4)], before=before, init=init)
    assert found.after == found.before
    assert "runs layers" in found.reasons


def test_the_parameters_of_a_recurrent_layer_are_not_handed_over(tmp_path: Path) -> None:
    """Dynamo does not even look at the layer: the operator would break the graph itself."""
    before = OUTSIDE.format("net, x", "net(x)[0]")
    forward, init = "y = outside(self.net, x)\nreturn y + 1", "self.net = nn.GRU(4, 4)"
    found = recorded(tmp_path, forward, [(3, 4), (5, 4)], before=before, init=init, gradients=True)
    assert found.after == found.before
    assert "`self.net` is a recurrent layer" in found.reasons
    found = recorded(tmp_path, forward, [(3, 4), (5, 4)], before=before, init=init)
    x = torch.randn(7, 4)
    with torch.no_grad():  # nothing is handed over
        assert torch.allclose(one_graph(found.model(), x), found.model()(x))


def test_an_object_that_is_made_is_taken_in(tmp_path: Path) -> None:
    """A generator cannot leave the operator: the statements that use it go in as well."""
    forward = """
generator = torch.Generator().manual_seed(4)
noise = torch.rand(x.shape, generator=generator)
return x + noise
"""
    found = recorded(tmp_path, forward, [(3, 4), (5, 6)])
    assert "_noise_operator" in found.after, found.reasons
    x = torch.randn(4, 7)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))


def test_a_safe_fix_of_the_call_goes_before_an_operator_inside(tmp_path: Path) -> None:
    """The call is a constant while tracing, for each size; an operator would be for the recorded ones."""
    before = """
def turned(x, low, high):
    x = np.asanyarray(x)
    return np.array(np.fmod(x - low, high - low), dtype=x.dtype)
"""
    forward = """
last = x.shape[1]
y = turned(np.arange(-2, last + 1, dtype="int32"), 0, last)
return x.sum() + torch.from_numpy(y)
"""
    found = recorded(tmp_path, forward, [(3, 4), (5, 4)], before=before)
    assert "_turned_while_tracing" in found.after, found.reasons
    assert "_recorded_operator" not in found.after
    x = torch.randn(4, 7)
    assert torch.equal(one_graph(found.model(), x), found.model()(x))
