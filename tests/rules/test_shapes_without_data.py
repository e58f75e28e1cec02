"""What makes the empty results of an operator asks no tensor for its elements, nor how many of them there are."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed

_FORM = """
import torch


def computed(x: torch.Tensor, kept: bool = True):
    BODY


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return computed(x) * 2
"""
_INPUTS = ["torch.randn(4, 3, generator=torch.Generator().manual_seed(1))", "-torch.ones(2, 3)", "torch.zeros(3, 3)"]


@pytest.mark.parametrize(
    "body",
    [
        "a = x.sum() > 0 and x.mean() > 0\n    return x * a",
        "a = not x.any()\n    return x * a",
        "a = 0 < x.sum() < 1\n    return x * a",
        "return x.sum() or x.mean()",
        "return (x.max() > 0 and x.sum()) + x",
        "scale = 2.0 if x.sum() > 0 else 3.0\n    return x * scale",
        "found = x[x > 0]\n    if found.numel() == 0:\n        return torch.zeros(3)\n    return found.sum()",
        "if x[x > 0].numel() == 0:\n        return torch.zeros(3)\n    return x.sum()",
        "if len(x.nonzero()) > 2:\n        return torch.zeros(3)\n    return x.sum()",
        "if x[0, 0] in [1.0, 2.0]:\n        return torch.zeros(3)\n    return x.sum()",
        "rows = [row for row in x if row.sum() > 0]\n    return torch.zeros(len(rows)) + x.sum()",
    ],
)
def test_a_shape_that_asks_for_data_is_none(body: str) -> None:
    text, _ = fixed(_FORM.replace("BODY", body), opaque=True)
    assert "computed_operator" not in text
    compiles(text, _INPUTS, strict=False, state=False)


@pytest.mark.parametrize(
    "body",
    [
        "size = 2 if x.dim() == 2 and kept else 3\n    total = torch.zeros(size)\n    for row in x:\n"
        "        if row.sum() > 0 and row.max() < 9:\n            total += row.sum()\n    return total",
        "total = torch.zeros(())\n    for row in x:\n        if row.sum() > 0 and row.max() < 9:\n"
        "            total += row.sum()\n    return total if kept and not x.dim() == 1 else -total",
        "found = x[x > 0]\n    total = found.sum() if kept else found.mean()\n    return total + x.mean()",
    ],
)
def test_one_that_python_decides_is(body: str) -> None:
    text, _ = fixed(_FORM.replace("BODY", body), opaque=True)
    assert "computed_operator" in text or "in_graph" in text
    compiles(text, _INPUTS, state=False)


@pytest.mark.parametrize("body", ["return x ** int(x.max())", "x = x ** int(x.max())\n    return x"])
def test_an_exponent_that_data_tells_is_for_code_without_gradients(body: str) -> None:
    text, _ = fixed(_FORM.replace("BODY", body), opaque=True)
    assert "is_compiling() and not torch.is_grad_enabled()" in text


_WHOLE = """
import torch


def computed(x: torch.Tensor):
    total = torch.zeros(())
    for row in x:
        if row.sum() > 0:
            total += row.sum()
    return total


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def added(self, x: torch.Tensor):
        total = torch.zeros(())
        for row in x:
            if row.sum() > 0:
                total += row.sum() * self.scale
        return total

    def forward(self, x: torch.Tensor):
        return CALLED * 2
"""


@pytest.mark.parametrize("called", ["computed(x)", "self.added(x)"])
def test_where_no_empty_result_can_be_made_the_graph_breaks(called: str) -> None:
    text, _ = fixed(_WHOLE.replace("CALLED", called), opaque=True)
    assert "    return [total]" in text
    compiles(text.replace("    return [total]", "    return [total + int(total)]"), _INPUTS, strict=False, state=False)
