"""Operators by recorded calls of modules without parameters, such as losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.evaluation.recorded_fixes import BACKENDS, OUTSIDE, Recorded, grad_of, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]

_BEFORE = OUTSIDE.format("model, x", "(x * model.scale).exp()")


def _recorded(folder: Path, init: str) -> Recorded:
    source = model_with("h = x * 2\ny = outside(self, h)\nreturn y + 1", _BEFORE, init)
    shapes: Any = lambda: [(torch.randn(3, 4, requires_grad=True),), (torch.randn(5, 4, requires_grad=True),)]  # noqa: E731
    return Recorded(folder, source, shapes, gradients=True)


def _gradients(model: Any, compiled: bool, backend: str = "aot_eager") -> list[torch.Tensor]:
    x = torch.linspace(-1, 1, 28).reshape(7, 4).requires_grad_()
    torch.compiler.reset()
    run = torch.compile(model, backend=backend, dynamic=False) if compiled else model
    run(x).sum().backward()
    held = [model.scale] if isinstance(model.scale, torch.Tensor) and model.scale.requires_grad else []
    return [grad_of(each) for each in (x, *held)]


def test_a_module_without_parameters_has_the_gradients_of_eager_mode(tmp_path: Path) -> None:
    found = _recorded(tmp_path, "self.scale = 2.0")
    assert "_recorded_function" in found.after, found.reasons
    for backend in BACKENDS:
        assert one_graph(found.model(), torch.randn(7, 4, requires_grad=True), backend=backend).shape == (7, 4)
        pairs = zip(_gradients(found.model(), False), _gradients(found.model(), True, backend), strict=True)
        assert all(torch.allclose(one, other) for one, other in pairs)


@pytest.mark.parametrize("trained", ["torch.nn.Parameter(torch.ones(4))", "torch.ones(4, requires_grad=True)"])
def test_a_module_that_is_trained_later_takes_the_author_s_path(tmp_path: Path, trained: str) -> None:
    found = _recorded(tmp_path, "self.scale = 2.0")
    models = found.model(), found.model()
    for each in models:
        each.scale = eval(trained)
    pairs = zip(_gradients(models[0], False), _gradients(models[1], True), strict=True)
    assert all(torch.allclose(one, other) for one, other in pairs)
