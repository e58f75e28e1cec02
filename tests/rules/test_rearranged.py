"""Functions of einops in what a branch computes, and operators that broadcast."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import embedded, fixed
from tests.tools.observe import Scenario

_SOURCE = """
import torch
from einops import rearrange, reduce, repeat
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, m: torch.Tensor):
        ...
"""
_INPUTS = [
    "torch.ones(2, 3, 4), torch.tensor([True, False])",
    "-torch.ones(2, 3, 4), torch.tensor([True, True])",
    "torch.ones(3, 3, 4, dtype=torch.int64), torch.tensor([False, False, False])",
]
_BODIES = {
    "view": "if not m.all():\n    x = x.masked_fill(rearrange(m, 'b -> b 1 1'), 0.0)\nreturn x",
    "groups": "y = rearrange(x, 'b n d -> b (n d)')\nif y.sum() > 0:\n    y = y * 2\nreturn y",
    "axes": "if x.sum() > 0:\n    y = repeat(x, 'b n d -> r b n d', r=2).sum(0)\nelse:\n    y = x\nreturn y",
    "rest": "y = x * 2\nif x.sum() > 0:\n    y = rearrange(x, 'b ... -> ... b').sum() * x\nreturn y",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
def test_what_einops_gives_is_a_tensor_and_takes_part_in_a_select(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    assert "torch.where(" in text
    behaves(source, text, _INPUTS)
    compiles(text, _INPUTS, scenarios=[Scenario(), Scenario(True, "leaves")], strict=False)


@pytest.mark.parametrize("body", [_BODIES["view"], _BODIES["axes"]])
def test_one_graph(body: str) -> None:
    compiles(fixed(embedded(body, _SOURCE), select=("GM101",))[0], _INPUTS[:2], scenarios=[Scenario(True, "leaves")])


@pytest.mark.parametrize(
    "line",
    [
        "x = rearrange(x, 'b (n r) d -> b n (r d)', r=3)",
        "x = rearrange(x, 'b n d -> b n')",
        "x = rearrange(x, 'b 1 d -> b d')",
        "x = repeat(x, 'b n d -> b n d r')",
        "x = repeat(x, 'b n d -> b n d r', r=m)",
        "x = reduce(x, 'b n d -> b n', 'max')",
        "x = rearrange(x, p)",
    ],
)
def test_a_pattern_that_may_not_fit_is_left_alone(line: str) -> None:
    source = embedded(f"p = 'b n d -> b d n'\nif x.sum() > 0:\n    {line}\nreturn x", _SOURCE)
    assert fixed(source, select=("GM101",))[0] == source


def test_a_view_of_einops_is_known_to_be_one() -> None:
    """What is written through the view is what the select would have copied."""
    body = "y = rearrange(x, 'b n d -> n b d')\nif x.sum() > 0:\n    x = x * 1\ny.add_(1)\nreturn x, y"
    source = embedded(body, _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    behaves(source, text, _INPUTS)
    compiles(text, _INPUTS, strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "if m.sum() > 0:\n    x = torch.maximum(x, m)\nreturn x",
        "if m.sum() > 0:\n    x = x.add(m)\nreturn x",
        "if m.sum() > 0:\n    x = torch.where(x > 0, x, m)\nreturn x",
        "if x.sum() > 0:\n    x = x.masked_fill(m, -1e4)\nreturn x",
    ],
)
def test_operators_that_broadcast_are_asked_as_their_signs_are(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    assert "torch.where(" in text.replace(body, "")
    inputs = [
        "torch.ones(2, 3), torch.ones(3)",
        "torch.ones(3), torch.ones(2, 3)",
        "torch.ones(3), -torch.ones(4)",
        "torch.ones(2, 3), torch.tensor([True, False, True])",
        "torch.ones(2, 3, dtype=torch.uint8), torch.zeros(3, dtype=torch.bool)",
        "torch.ones(2, 3), torch.zeros(3, dtype=torch.uint8)",
    ]
    behaves(source, text, inputs)
    compiles(text, inputs, strict=False)
