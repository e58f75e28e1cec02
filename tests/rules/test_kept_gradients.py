"""What operators keep of a call for its gradient, where something else decides what autograd keeps."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from graphmend_codemod.rules.proofs.outlining import custom_op
from graphmend_codemod.rules.proofs.outlining.texts import layers, recorded

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]

_CODE = """
def code(owner, x):
    return (owner(x) * x).tanh() * owner.bias


def scaled(x, weight):
    return (x * weight).tanh() * x
"""


@pytest.fixture
def file() -> Iterator[Any]:
    """A module with all helpers, and code that they make operators of."""
    made: Any = types.ModuleType("kept_gradients")
    made.torch = torch
    sys.modules[made.__name__] = made
    texts = [each.source for each in custom_op.functions(None, gradient=True)]  # type: ignore[arg-type]
    for text in (*texts, layers.PLAIN, layers.FITS, layers.ONE_OPERATOR, recorded.operator("gradient"), _CODE):
        exec(compile(text, made.__name__, "exec"), vars(made))
    yield made
    del sys.modules[made.__name__]


def _operators(file: Any, owner: torch.nn.Linear) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    weight = owner.bias
    like: Any = lambda *given: [torch.empty_like(each) for each in given if isinstance(each, torch.Tensor)][:1]  # noqa: E731
    results: Any = lambda x, weight: [(tuple(x.shape), x.dtype, x.device)]  # noqa: E731
    function = file._function_operator(like)(file.scaled)
    layer = file._one_operator("", shapes=like)(file.code)
    known = file._recorded_function(results, 1, "tensor")(file.scaled)
    return {
        "function": (lambda x: function(x, weight), lambda x: file.scaled(x, weight)),
        "layer": (lambda x: layer(owner, x), lambda x: file.code(owner, x)),
        "recorded": (lambda x: known(x, weight), lambda x: file.scaled(x, weight)),
    }


def _gradients(model: Callable[[Any], Any], owner: torch.nn.Module) -> list[torch.Tensor]:
    owner.zero_grad()
    x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
    model(x).sum().backward()
    return [each.grad.clone() for each in (x, *owner.parameters()) if each.grad is not None]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("where", ["plain", "outside", "inside", "reentrant", "on the CPU"])
@pytest.mark.parametrize("kind", ["function", "layer", "recorded"])
def test_checkpoints_and_hooks_of_saved_tensors(file: Any, kind: str, where: str, backend: str) -> None:
    owner = torch.nn.Linear(4, 4)
    operator, plain = _operators(file, owner)[kind]
    torch.compiler.reset()
    around: Any = lambda x: operator(x.sin()).cos()  # noqa: E731
    whole: Any = torch.compile(around, backend=backend, fullgraph=True)
    model: Any = whole
    if where == "inside":
        inner: Any = lambda x: checkpoint(around, x, use_reentrant=False)  # noqa: E731
        model = torch.compile(inner, backend=backend)
    elif where in ("outside", "reentrant"):
        model = lambda x: checkpoint(whole, x, use_reentrant=where == "reentrant")  # noqa: E731
    hooks: Any = torch.autograd.graph.save_on_cpu() if where == "on the CPU" else contextlib.nullcontext()
    expected = _gradients(lambda x: plain(x.sin()).cos(), owner)
    with hooks:
        torch.testing.assert_close(_gradients(model, owner), expected)
