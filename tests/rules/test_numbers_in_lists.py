"""Lists of numbers and of chosen rows, which loops go through and assertions ask about (GM802)."""

from __future__ import annotations

import pytest
import torch

from tests.tools.compiled import compiles
from tests.tools.fixes import embedded, fixed
from tests.tools.observe import Scenario

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor):
        ...
"""
_INPUTS = [
    "torch.randn(2, 4), torch.tensor([3, 4])",
    "torch.randn(2, 4), torch.tensor([1, 2])",
    "torch.randn(2, 4), torch.tensor([4, 4])",
]
_TRACED = {
    "an assertion": "k = n.tolist()\nassert 4 >= max(k), 'too long'\nreturn x[:, :1] * x.new_tensor(k)",
    "a padding mask": (
        "k = n.tolist()\nsizes = torch.arange(4).expand(len(k), 4)\nif len(k) > 3:\n    return x\n"
        "return x.masked_fill(sizes >= sizes.new(k).unsqueeze(-1), 0)"
    ),
    "a loop": "k = n.tolist()\nfor i, each in enumerate(k):\n    x = x + i * each\nreturn x",
    "two together": "k = n.tolist()\nparts = [row * each for row, each in zip(x, k)]\nreturn torch.stack(parts)",
    "chosen rows": "k = [row[row > 0] for row in x]\nreturn sum(each.sum() for each in k) + n.sum()",
    "its own name": "x = [row[row > 0] for row in x]\nreturn sum(each.sum() for each in x) + n.sum()",
}
_ASKED = {
    "an element": "k = n.tolist()\nfor each in k:\n    if each > 3:\n        x = x + 1\nreturn x",
    "one of two": "k = n.tolist()\nfor row, each in zip(x, k):\n    if each > 3:\n        x = x + row\nreturn x",
    "the whole list": "k = n.tolist()\nif max(k) > 3:\n    x = x + 1\nreturn x",
    "a message that is computed": "k = n.tolist()\nassert 4 >= max(k), f'{k}'\nreturn x * x.new_tensor(k)[:, None]",
    "several tests": "k = n.tolist()\nassert 0 < max(k) < 5\nreturn x * x.new_tensor(k)[:, None]",
    "membership": "k = n.tolist()\nif 3 in k:\n    x = x + 1\nreturn x",
    "a dict": "k = n.tolist()\nreturn x * sum({3: 5}.get(each, 1) for each in k)",
    "a list of unknown length": "k = n[n > 1].tolist()\nfor each in k:\n    x = x * each\nreturn x",
    "how many rows there are": "k = [row[row > 0] for row in x]\nreturn n.sum() + sum(each / len(each) for each in k)",
    "a handler": (
        "k = n.tolist()\ntry:\n    assert 4 > max(k)\nexcept AssertionError:\n    return x\n"
        "return x * x.new_tensor(k)[:, None]"
    ),
    "how many rows": "k = [row[row > 0] for row in x]\nreturn sum(each.sum() for each in k if len(each) > 1) + n.sum()",
}
_CALLER = """

class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Model()

    def forward(self, x, n):
        try:
            return self.part(x, n)
        except AssertionError:
            return x
"""


@pytest.mark.parametrize("body", _TRACED.values(), ids=_TRACED)
def test_the_list_is_gone_through_and_asked_for_its_length(body: str) -> None:
    text = fixed(embedded(body, _SOURCE), select=("GM802",), opaque=True)[0]
    assert "_in_graph(" in text
    compiles(text, _INPUTS, scenarios=[Scenario(), Scenario(False, "off")])


@pytest.mark.parametrize("body", _ASKED.values(), ids=_ASKED)
def test_what_decides_by_an_element_breaks_the_graph(body: str) -> None:
    source = embedded(body, _SOURCE)
    assert "_in_graph(" not in fixed(source, select=("GM802",), opaque=True)[0]


def test_an_assertion_of_which_a_caller_catches_the_error_is_left() -> None:
    source = embedded(_TRACED["an assertion"], _SOURCE)
    assert "_in_graph(" not in fixed(source + _CALLER, select=("GM802",), opaque=True)[0]


def test_a_size_is_no_list() -> None:
    body = "k = x.shape\nif n.dim():\n    k = n.tolist()\nreturn x.new(k).zero_().sum() + x"
    source = embedded(body, _SOURCE)
    text = fixed(source, select=("GM802",), opaque=True)[0]
    assert "x.new_tensor(k)" in text
    assert "isinstance(k, list)" in text
    compiles(text, ["torch.randn(2, 4), torch.tensor(3)"], scenarios=[Scenario(False, "off")], strict=False)


@pytest.mark.parametrize("values", [[3, 4], [], [2**40]])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool, torch.bfloat16])
def test_the_old_constructor_makes_the_tensor_of_the_new_one(values: list[int], dtype: torch.dtype) -> None:
    x = torch.zeros(2, dtype=dtype)
    old, new = x.new(values), x.new_tensor(values)
    assert (old.dtype, old.shape) == (new.dtype, new.shape)
    assert torch.equal(old, new)
