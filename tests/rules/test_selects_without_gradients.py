"""A select that runs without gradients must not cut the graph of a tensor that was made with them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.tools.compiled import compiled_differences
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

pytest.importorskip("torch")

MODEL = """
import torch
from torch import nn


def clamped(x: torch.FloatTensor):
    if (x > 0.5).any():
        return x.clamp(max=0.5)
    return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.FloatTensor):
        x = x + self.linear(x)
        ...
        return x
"""
TRAINING = (Scenario(training=True, gradients="inner"),)


@pytest.mark.parametrize(
    ("before", "statements"),
    [
        ("", "with torch.no_grad():\n    if torch.isinf(x).any():\n        x = torch.clamp(x, -1, 1)"),
        ("", "with torch.no_grad():\n    if x.sum() > 100:\n        x = x * 2"),
        ("", "with torch.autocast('cpu', enabled=False):\n    if x.sum() > 100:\n        x = x * 2"),
        ("", "with torch.inference_mode(False):\n    x = x if x.sum() < 100 else x * 2"),
        ("@torch.no_grad()\n", "x = clamped(x)"),
    ],
)
@pytest.mark.parametrize("size", ["0.01", "50"])
def test_gradients_are_those_of_eager_mode(before: str, statements: str, size: str) -> None:
    text = MODEL.replace("def clamped", f"{before}def clamped")
    text = text.replace("        ...\n", dedent(statements).replace("\n", "\n        ").join(["        ", "\n"]))
    after = fixed(text)[0]
    assert after != text
    assert list(compiled_differences(after, (f"torch.full((2, 4), {size})",), scenarios=TRAINING)) == []


def test_a_test_of_a_buffer_that_is_written_keeps_out_of_gradients() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(0.0))

    def forward(self, x: torch.Tensor):
        if self.count > 1:
            x = x * 2.0
        self.count.add_(1)
        return x
"""
    after, _ = fixed(source, select=("GM101",))
    assert "not torch.is_grad_enabled()" in after
    kept, _ = fixed(source.replace("self.count.add_(1)", "x = x + 1"), select=("GM101",))
    assert "torch.where(" in kept
    assert "is_grad_enabled" not in kept
