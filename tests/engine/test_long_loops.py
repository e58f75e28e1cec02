"""A fix in a loop of many rounds would make Dynamo unroll them all: it asks for few, or is declined."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rounds = 3

    @property
    def counted(self):
        self.rounds += 1
        return 3

    def forward(self, x: torch.Tensor, n: int = 3):
        distance = torch.full_like(x, 10.0)
        for i in range({stop}):
            closer = x < distance
            distance[closer] = x[closer]
            {after}
        return distance
"""
_CODE: dict[str, Any] = {"select": ("GM509",)}  # GM504 would make one operator of the loop
HEADER = "torch.compiler.is_compiling()\n                and {} <= 64\n"


def model(stop: str, after: str = "x = x - 1") -> str:
    return SOURCE.format(stop=stop, after=after)


@pytest.mark.parametrize("stop", ["n", "1, n", "self.rounds", "x.shape[0]"])
def test_the_number_of_rounds_is_asked_for(stop: str) -> None:
    after, _ = fixed(model(stop, "closer = ~closer" if stop.startswith("x") else "x = x - 1"), **_CODE)

    assert HEADER.format(stop.rpartition(" ")[2]) in after
    compiles(after, ["torch.ones(3, 2)", "torch.arange(6.0).view(3, 2)"])


def test_many_rounds_break_as_before() -> None:
    after, _ = fixed(model("n"), **_CODE)

    compiles(after, ["torch.ones(2, 2), 70"], strict=False)


@pytest.mark.parametrize("stop", ["512", "1, 65"])
def test_a_loop_of_many_rounds_is_left_alone(stop: str) -> None:
    declined(model(stop), because=f"Dynamo unrolls all rounds of `range({stop})`", **_CODE)


@pytest.mark.parametrize("stop", ["3", "len(x)", "int(self.rounds)", "self.counted"])
def test_what_is_short_or_cannot_be_asked_again_is_not_asked(stop: str) -> None:
    after, _ = fixed(model(stop), **_CODE)

    assert "torch.compiler.is_compiling()" in after
    assert "<= 64" not in after


@pytest.mark.parametrize("after", ["n = x", "del n"])
def test_a_name_that_the_loop_binds_anew_is_not_asked(after: str) -> None:
    assert "<= 64" not in fixed(model("n", after), **_CODE)[0]
