"""Selects between values that are computed before they are compared (GM101, GM102)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, m: torch.Tensor):
{body}
"""
_INPUTS = ["torch.ones(3, 3), torch.ones(3, 3)", "-torch.ones(3, 3), torch.zeros(3, 3)"]
_OFF = [Scenario(False, "off")]


def model(body: str) -> str:
    lines = [f"        {line}" if line else "" for line in body.strip("\n").split("\n")]
    return _MODEL.format(body="\n".join(lines))


SYMMETRIC = """
k = x.reshape(3, -1)
if k.shape[0] == m.shape[0] and torch.eq(x, m).all():
    k = 0.5 * (k.transpose(-1, -2) + k)
return k
"""
MEAN_UNDER_MASK = """
d = m.sum()
if d.item() == 0:
    return torch.zeros((), dtype=x.dtype, device=x.device)
return (x * m).sum() / d
"""
SEVERAL = """
if x.sum() > 3:
    y = x * 2
    return y.exp().mean()
z = x + 1
if z.sum() < 0:
    return torch.tensor(0.0)
z, w = z * 2, z
return (z + w).mean()
"""


@pytest.mark.parametrize("body", [SYMMETRIC, MEAN_UNDER_MASK, SEVERAL])
def test_values_are_compared_before_one_is_selected(body: str) -> None:
    before = model(body)
    after, _ = fixed(before, select=("GM101", "GM102"))
    assert ".device) == (" in after
    behaves(before, after, _INPUTS)
    compiles(after, [*_INPUTS, "torch.ones(3, 3) / 9, torch.ones(3, 3)"], scenarios=_OFF)


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (MEAN_UNDER_MASK, "torch.ones(3, 3, dtype=torch.half), torch.ones(3, 3)"),
        (SYMMETRIC, "torch.ones(2, 6), torch.ones(2, 6)"),
        (SEVERAL, "torch.ones(3, 3, dtype=torch.double), torch.ones(3, 3)"),
    ],
)
def test_the_branch_runs_where_the_values_differ(body: str, inputs: str) -> None:
    after, _ = fixed(model(body), select=("GM101", "GM102"))
    compiles(after, [inputs], scenarios=_OFF, strict=False)


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("if x.sum() > 0:\n    x = x.sum()\nreturn x", "different shape"),
        ("if x.sum() > 0:\n    x = x.double()\nreturn x", "different dtype"),
        ("if x.sum() > 0:\n    return x @ m\nreturn x", "is work that eager mode skips"),
        ("if x.sum() > 0:\n    return x[m.shape[0] + 1]\nreturn x.mean(0)", "different shape"),
        ("if x.sum() > 0:\n    return torch.tensor(0.0, requires_grad=True)\nreturn x.mean()", "different dtype"),
        ("y = x\nif x.sum() > 0:\n    x = x.mean(0)\nx += 1\nreturn x, y", "different shape"),
    ],
)
def test_what_can_not_be_compared_is_declined(body: str, because: str) -> None:
    declined(model(body), because=because, select=("GM101", "GM102"))


def test_statements_behind_an_if_around_the_branch_belong_to_the_rest() -> None:
    before = model("if self.training:\n    if x.sum() > 3:\n        return x * 2\ny = x + 1\nreturn y * 3")
    after, _ = fixed(before, select=("GM102",))
    assert "is_compiling()" in after
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario(True, "leaves")])


def test_operands_that_may_not_broadcast_are_asked() -> None:
    after, _ = fixed(model("if x.sum() > 0:\n    x = x * m\nreturn x"), select=("GM101",))
    assert "zip(x.shape[::-1], m.shape[::-1])" in after
    compiles(after, ["torch.ones(3, 3), torch.ones(3)"], scenarios=_OFF)
    compiles(after, ["-torch.ones(3, 3), torch.ones(2)", "-torch.ones(3, 3), torch.ones(2, 3, 3)"], strict=False)
