"""`min` and `max` with a key (GM603)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, noop
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Way:
    def __init__(self, rank, factor):
        self.rank, self.factor = rank, factor


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.ways = {{"slow": Way(2, 3.0), "fast": Way(1, 5.0), "late": Way(1, 7.0)}}
        self.odd = [Way(float("nan"), 2.0), Way(0.5, 3.0), Way(float("nan"), 4.0)]
        self.none = []

    def forward(self, x):
        {statement}
        return x
"""
_INPUTS = ["torch.rand(2, 3)", "torch.rand(4, 2)"]


@pytest.mark.parametrize(
    "statement",
    [
        "x = x * min(self.ways.values(), key=lambda way: way.rank).factor",  # two are the least
        "x = x * max(self.ways.values(), key=lambda way: -way.rank).factor",
        "x = x * max(self.odd, key=lambda way: way.rank).factor + min(self.odd, key=lambda way: way.rank).factor",
        "x = x * (1 + max(enumerate(x.shape), key=lambda pair: pair[1])[0])",
        "x = x + min(x, x[:1], key=len).sum()",
        "x = x * min((each for each in self.odd[1:]), key=lambda way: -way.rank).factor",
    ],
)
def test_the_same_value_is_chosen(statement: str) -> None:
    source = _MODEL.format(statement=statement)
    after, _ = fixed(source, select=("GM603",))
    assert "_while_tracing if torch.compiler.is_compiling() else m" in after
    assert fixed(after, select=("GM603",))[0] == after
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario()])


@pytest.mark.parametrize(
    "statement",
    [
        "x = x * min(self.none, key=lambda way: way.rank).factor",
        "x = min((x, x * 2), key=torch.sum)",
    ],
)
def test_what_has_no_value_or_is_decided_by_tensors_does_what_it_did(statement: str) -> None:
    source = _MODEL.format(statement=statement)
    after, _ = fixed(source, select=("GM603",))
    assert after != source
    behaves(source, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[Scenario()], strict=False)


def test_a_lambda_that_gives_a_tensor_is_left_to_the_advice() -> None:
    source = _MODEL.format(statement="x = min((x, x * 2), key=lambda each: each.sum())")
    assert fixed(source)[0] == source


@pytest.mark.parametrize(
    "statement",
    [
        "x = x * max([3, -4], key=abs)",
        "x = x * max(3, -4, key=abs)",
        "x = x * max(range(3), key=lambda place: -place)",
        "x = x * max([x.shape[0], 4], key=None)",
        "max = sorted\n        x = x * max([x.shape[0], 4], key=abs)[0]",
    ],
)
def test_what_dynamo_traces_is_left_alone(statement: str) -> None:
    noop(_MODEL.format(statement=statement), select=("GM603",))


def test_of_a_list_of_strings_dynamo_computes_the_key() -> None:
    method = "return x\n\n    def text(self, names: {kind}):\n        return max(names, key=len)"
    for kind, left_alone in (("list[str]", True), ("list[int]", False), ("dict[str, int]", False)):
        source = _MODEL.format(statement="x = x * len(self.text(['a', 'bc']))").replace(
            "return x", method.format(kind=kind)
        )
        assert (fixed(source, select=("GM603",))[0] == source) is left_alone


def test_of_no_values_the_helper_says_what_python_says() -> None:
    after, _ = fixed(_MODEL.format(statement="x = x * min(self.none, key=len)"), select=("GM603",))
    names: dict[str, Any] = {}
    exec(after, names)
    with pytest.raises(ValueError, match="empty"):
        names["_min_while_tracing"]([], key=len)


def test_a_default_is_declined() -> None:
    statement = "x = x * max(self.odd, key=lambda way: way.rank, default=None).factor"
    declined(_MODEL.format(statement=statement), because="more than values and a key", select=("GM603",))
