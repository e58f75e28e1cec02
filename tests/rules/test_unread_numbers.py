"""GM401: numbers that are read out of a tensor in every call, and used behind a test of Python alone."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("speed", torch.ones(1))
        self.rate = rate
        self.log = False

    def forward(self, x, limit=None):
        {body}
        return x + 1


class Other(Model):
    pass
"""
_LEFT_OUT = "# Nothing uses the number"
_OFF = (Scenario(False, "off"),)


def model(body: str) -> str:
    return _MODEL.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "body",
    [
        "n = self.speed.item()\nx = self.norm(x)\nif self.training:\n    x = x * (1 - n)",
        "n = int(self.norm.num_batches_tracked.cpu().data)\nif self.rate > 0:\n    x = x * max(1 - self.rate * n, 0.5)",
        "n = float(self.speed)\nif limit is not None and n > limit:\n    x = x + 1",
        "n = self.speed.detach().max().item()\nif self.log:\n    print(n)\nif self.training and limit:\n    x = x * n",
        "n = int((x == 1).sum())\nif self.rate > 0 and n > self.rate:\n    x = x * n",
        "n = (x >= 0.5).float().sum().item()\nif self.rate > 0 and n > self.rate:\n    n = n * 2\n    x = x * n",
        "n = self.speed.item()\nfor _ in range(2):\n    if self.training:\n        x = x * int(n)\n    n = 2",
        "n = self.speed.item()\nif self.training:\n    n += 1\n    x = x * n\nn = 3\nx = x * 2",
    ],
    ids=["training", "rate", "None", "two", "count", "assigned", "loop", "added"],
)
def test_a_number_that_nothing_uses_is_not_read(body: str) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert _LEFT_OUT in after
    behaves(before, after, ["torch.randn(2, 3)", "torch.randn(2, 3), 0.5"])
    compiles(after, ["torch.randn(2, 3)"], scenarios=_OFF)


def test_a_number_that_is_used_is_read() -> None:
    after, _ = fixed(model("n = self.speed.item()\nif self.training:\n    x = x * (1 - n)"))
    compiles(after, ["torch.randn(2, 3)"], strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "n = self.speed.item()\nif self.training:\n    x = x * int(n)\nx = x.view(int(n), -1)",  # used elsewhere, too
        "n = self.speed.item()\nself.training = True\nif self.training:\n    x = x * int(n)",  # another test by then
        "n = self.speed.item()\nlimit = 3\nif limit is not None:\n    x = x * int(n)",
        "n = self.speed.item()\nif self.training:\n    x = (lambda: x * n)()",  # a function may keep it
        "n = self.speed.item()\nif x.sum() > 0:\n    x = x * int(n)",  # the data decides
        "n = self.read().item()\nif self.training:\n    x = x * int(n)",  # what is called may do more
        "n = self.speed.fill_(2).item()\nif self.training:\n    x = x * int(n)",
        "n = self.speed.item()\nn += 2\nif self.training:\n    x = x * int(n)",
        "n = self.speed.item()\nif self.training:\n    x = x * int(n)\ndel n",
        "n = int((x == limit).sum())\nif self.training:\n    x = x * int(n)",  # tensors of other shapes raise
        "n = int((x == 1000000000000000000000).sum())\nif self.training:\n    x = x * int(n)",  # no dtype has it
        "n = (x == 1).max().item()\nif self.training:\n    x = x * int(n)",
    ],
)
def test_a_number_that_may_be_used_is_read(body: str) -> None:
    assert _LEFT_OUT not in fixed(model(body))[0]


@pytest.mark.parametrize(
    ("read", "fails"),
    [
        ("limit.item()", "torch.ones(3)"),
        ("int(limit.data)", "torch.ones(3, dtype=torch.long)"),
        ("int(limit.sum())", "torch.tensor([float('nan')])"),
        ("float(limit.cpu().data)", "torch.ones(1, dtype=torch.complex64)"),
        ("limit.max().item()", "torch.ones(0)"),
        ("limit.mean().item()", "torch.ones(3, dtype=torch.long)"),
        ("limit.detach().item()", "3"),
        ("int((limit == 1).sum())", "3"),
        ("int((limit < 1).sum())", "torch.ones(1, dtype=torch.complex64)"),
    ],
)
def test_a_number_that_cannot_be_read_raises_as_before(read: str, fails: str) -> None:
    after, _ = fixed(model(f"n = {read}\nif self.training:\n    x = x * n"))
    assert _LEFT_OUT in after
    compiles(after, [f"torch.randn(2, 3), {fails}"], scenarios=_OFF, strict=False)


@pytest.mark.parametrize("read", ["int(limit.mean().item())", "limit.cpu().numpy().item()"])
def test_a_number_is_read_where_no_test_tells_whether_it_can_be(read: str) -> None:
    assert _LEFT_OUT not in fixed(model(f"n = {read}\nif self.training:\n    x = x * n"))[0]
