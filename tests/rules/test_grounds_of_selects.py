"""Grounds to decline that other tests of rules do not come by; some are backed by a second one with another reason."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from tests.tools.fixes import declined

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, limit=3):
        super().__init__()
        self.flag = False
        self.register_buffer("scale", torch.ones(4))
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor, n=None):
{statements}
"""


def _model(statements: str) -> str:
    return _MODEL.format(statements=indent(dedent(statements).strip("\n"), "        "))


_BRANCHES = {
    "a flag decides alone": (
        "x = (x * 2) if self.flag and x.sum() > 0 else x\nreturn x",
        "decides the test alone, as the class sets it",
    ),
    "an early result or None": (
        "if x.sum() > 0:\n    return\nreturn x * 2",
        "one branch returns None",
    ),
    "a Python condition between two tests": (
        "if x.sum() > 0:\n    return x * 2\nelif n is None and y.sum() > 0:\n    return x * 3\nreturn x",
        "a Python condition selects between later branches",
    ),
    "no return at the end": (
        "if x.sum() > 0:\n    return x * 2",
        "the function continues after the branch without a `return`",
    ),
    "too much behind the branch": (
        "if x.sum() > 0:\n    return x * 2\n"
        + "\n".join(f"x = x * {number}.0 + y - x.clamp(0.0, 1.0) * x" for number in range(2, 17))
        + "\nreturn x",
        "is too much to compute in any case",
    ),
    "a variable of one branch in another": (
        "if x.sum() > 0:\n    z = x * 2\n    w = z + 1\nelse:\n    z = x * 3\n    w = z - 1\nreturn w",
        "is assigned in several branches",
    ),
    "a dtype and a device that another tensor has": (
        "if x.sum() > 0:\n    y = x.to(dtype=mask.dtype, device=mask.device)\nreturn y",
        "may raise for some arguments",
    ),
    "a variable assigned twice": (
        "if x.sum() > 0:\n    w = x * 2\n    w = x + 1\nelse:\n    w = x - 1\nreturn w",
        "is assigned twice in one branch",
    ),
    "a nested function": (
        "def inner(z: torch.Tensor) -> torch.Tensor:\n    if z.sum() > 0:\n        z = z * 2\n    z.add_(1)\n"
        "    return z\nreturn inner(x)",
        "nested function",
    ),
    "an element that is bound in the test": (
        "out = torch.zeros_like(x)\nif x.sum() > 0:\n    out[0] = (k := x.sum())\nreturn out",
        "binds a name",
    ),
    "a mask and a number that may not fit": (
        "out = torch.zeros_like(x)\nif y.sum() > 0:\n    out[x > 0] = 1e60\nreturn out",
        "may not fit into the dtype",
    ),
    "a fill that raises": (
        "if mask.any():\n    x = x.masked_fill(mask, 1 / n)\nreturn x",
        "where eager mode skips it",
    ),
    "a fill with several elements": (
        "mask = x > 0\nif mask.any():\n    x[mask] = y\nreturn x",
        "may have more than one element",
    ),
    "a copy of another shape": (
        "mask = x > 0\nif mask.any():\n    x = torch.where(mask, y, x)\nreturn x",
        "may have a different shape",
    ),
    "a number that may not fit": (
        "mask = x > 0\nif mask.any():\n    x = x.masked_fill(mask, n)\nreturn x",
        "may not fit into the dtype",
    ),
    "a check with an else": (
        "if (x < 0).any():\n    raise ValueError('negative')\nelse:\n    x = x * 2\nreturn x",
        "the check has an `else`",
    ),
    "more than the mask is dropped": (
        "if mask.all():\n    mask = None\n    y = None\nif mask is not None:\n    x = x + mask\nreturn x",
        "does more than drop the mask",
    ),
    "a mask in a nested function": (
        "def inner(z, mask):\n    if mask.all():\n        mask = None\n    if mask is not None:\n        z = z * mask\n"
        "    return z\nreturn inner(x, mask)",
        "nested function",
    ),
}


@pytest.mark.parametrize("name", _BRANCHES)
def test_a_module_is_declined_for_its_first_reason(name: str) -> None:
    statements, because = _BRANCHES[name]
    declined(_model(statements), because)
