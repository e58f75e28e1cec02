"""`x[mask]` takes a mask that lies on the CPU, `torch.where` does not: compiled code goes the author's way there.

The meta device stands for a GPU: torch asks the same of it, with or without a GPU in the machine.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed
from tests.tools.subject import forget, load, register

_MODULE = """
import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, {arguments}):
{body}
"""
_BODIES = {
    "rows read and written": "y = torch.zeros_like(x)\ny[mask] = torch.tanh(x[mask])\nreturn y",
    "rows changed in place": "x = x * 1\nx[mask] += 1.0\nreturn x",
    "a mask of the function's own": (
        "x = x * 1\nkeep = torch.ones(x.shape, dtype=torch.bool)\nx[keep] *= 2.0\nreturn x"
    ),
    "a sum": "return x[mask].sum()",
    "a mean": "return (x[mask] - 1).abs().mean()",
    "a loss": "return F.mse_loss(x[mask], (x * 2)[mask])",
    "rows copied": "y = x * 2\ny[mask] = x[mask]\nreturn y",
    "under a test": "x = x * 1\nif mask.any():\n    x[mask] = x[mask] * 2\nreturn x",
}


@pytest.mark.parametrize("name", _BODIES)
def test_a_mask_on_the_cpu_selects_from_a_tensor_elsewhere(name: str) -> None:
    after, _ = fixed(_model(_BODIES[name]))
    assert "is_compiling()" in after
    source = register(after)
    try:
        model = load(source).Model()
        x, mask = torch.ones(2, 2, device="meta"), torch.tensor([[True, False], [True, True]])
        eager = model(x, mask)
        function: Any = torch.compile(model, backend="eager")
        compiled = function(x, mask)
    finally:
        forget(source)
    assert compiled.device == eager.device == x.device
    assert compiled.shape == eager.shape


@pytest.mark.parametrize("body", ["return x[mask].sum()", "y = torch.zeros_like(x)\ny[mask] = x[mask]\nreturn y"])
def test_nothing_is_asked_of_a_mask_that_compares_the_tensor(body: str) -> None:
    after, _ = fixed(_model(f"mask = x > 0\n{body}", "x: torch.Tensor"))
    assert "is_compiling()" in after
    assert ".device ==" not in after


@pytest.mark.parametrize(
    "lines",
    [
        "mask = x > 0\nx = x.to(where)",
        "mask = (x > 0).cpu()",
        "mask = x > 0\nx = self.layer(x)",
        "mask = x > 0\nfor _ in range(2):\n    mask = mask & other",
        "mask = other > 0",
        "mask, other = other > 0, x",
        "mask = self.x > 0",
    ],
)
def test_a_device_is_asked_for_where_the_function_may_move_one(lines: str) -> None:
    after, _ = fixed(_model(f"{lines}\nreturn x[mask].sum()", "x: torch.Tensor, other: torch.Tensor, where=None"))
    assert "x.device == mask.device" in after


def _model(body: str, arguments: str = "x: torch.Tensor, mask: torch.Tensor") -> str:
    return _MODULE.format(body=indent(body, " " * 8), arguments=arguments)
