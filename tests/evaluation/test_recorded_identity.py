"""Operators by recorded calls: which of the tensors that go in are one and the same object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.evaluation.recorded_fixes import OUTSIDE, Recorded, grad_of, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]

_BACKENDS = ("aot_eager", "inductor")  # Inductor hands over one tensor for a copy and its original
_BEFORE = OUTSIDE.format("x, other", "x * 3 if other is x else x * other.sin()")
_GIVEN = {"the same": "h", "of the same memory": "h.detach()", "a view": "h.view_as(h)", "a copy": "h.clone()"}


def _recorded(folder: Path, second: str, *, gradients: bool) -> Recorded:
    forward = f"h = x * 2\nother = {second}\ny = outside(h, other)\nreturn y + 1"
    shapes: Any = lambda: [  # noqa: E731
        (torch.randn(3, 4, requires_grad=gradients),),
        (torch.randn(5, 6, requires_grad=gradients),),
    ]
    return Recorded(folder, model_with(forward, _BEFORE), shapes, gradients=gradients)


@pytest.mark.parametrize("second", _GIVEN.values(), ids=_GIVEN)
def test_what_is_one_object_stays_one(tmp_path: Path, second: str) -> None:
    """What the operator runs may ask `other is x`, in files that nothing has read."""
    found = _recorded(tmp_path, second, gradients=False)
    assert "_recorded_operator" in found.after, found.reasons
    x = torch.randn(7, 8)
    for backend in _BACKENDS:
        assert torch.allclose(one_graph(found.model(), x, backend=backend), found.model()(x)), backend


@pytest.mark.parametrize("second", _GIVEN.values(), ids=_GIVEN)
def test_what_is_one_object_stays_one_for_gradients(tmp_path: Path, second: str) -> None:
    found = _recorded(tmp_path, second, gradients=True)
    assert "_recorded_function" in found.after, found.reasons
    for backend in _BACKENDS:
        grads = []
        for compiled in (False, True):
            x = torch.randn(7, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
            made = one_graph(found.model(), x, backend=backend) if compiled else found.model()(x)
            made.sum().backward()
            grads.append(grad_of(x))
        assert torch.allclose(grads[0], grads[1]), backend
