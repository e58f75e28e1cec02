"""Models whose state an operator changes, eager and compiled."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed

_MODULE = "stateful_subject"


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget what a test compiled. A test module that imports this uses it for all its tests."""
    yield
    sys.modules.pop(_MODULE, None)
    torch._dynamo.reset()


def loaded(source: str) -> Any:
    """The module that `source` becomes, opaque operators included."""
    module: Any = types.ModuleType(_MODULE)
    sys.modules[_MODULE] = module
    exec(compile(fixed(source, opaque=True)[0], "subject.py", "exec"), vars(module))
    return module


def run(model: Any, call: Any, x: torch.Tensor) -> list[torch.Tensor]:
    """The result of a call, the gradient of `x`, and the buffers afterwards."""
    x = x.clone().requires_grad_()
    found = call(x)
    found.backward()
    assert x.grad is not None
    return [found.detach(), x.grad, *(each.clone() for each in model.buffers())]
