"""A compile path calls no builtin whose name the function or the file gives to something else."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_SOURCE = """
import torch
from torch import nn
{top}

class Model(nn.Module):
    def forward(self, x: torch.Tensor, {name}=3):
        {body}
"""
_LAYER = """
import torch
from torch import nn
{top}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x: torch.Tensor):
        return self.lstm(x)[0]
"""
_BRANCH = "if x.sum() > 0:\n            x = x * 2\n        return x"
_ROWS = "chosen = x > 0\n        x[chosen] = x[chosen].abs() + 1\n        return x"


@pytest.mark.parametrize("body", [_BRANCH, _ROWS])
def test_a_parameter_that_hides_a_builtin_is_not_called(body: str) -> None:
    declined(_SOURCE.format(top="", name="isinstance", body=body), because="something else")


@pytest.mark.parametrize("top", ["def isinstance(a, b):\n    return False\n", "from math import prod as isinstance\n"])
def test_neither_is_a_function_of_the_file(top: str) -> None:
    declined(_SOURCE.format(top=top, name="n", body=_BRANCH), because="uses the name `isinstance` for something else")


@pytest.mark.parametrize("name", ["type", "all", "len", "sum"])
def test_what_is_not_called_may_have_any_name(name: str) -> None:
    after, _ = fixed(_SOURCE.format(top="", name=name, body=_BRANCH))

    assert "is_compiling()" in after
    compiles(after, ["torch.ones(2)", "-torch.ones(2)"])


def test_a_word_of_a_message_or_an_attribute_reads_no_name() -> None:
    source = _SOURCE.format(top="", name="input", body="x = x * self.list[0]\n        " + _BRANCH)
    source = source.replace("    def forward", "    list = [2.0]\n\n    def forward")
    after, _ = fixed(source)
    assert "is_compiling()" in after


@pytest.mark.parametrize("top", ["float = torch.float32\n", "from numpy import float64 as float\n"])
def test_a_builtin_that_a_helper_names_is_read_as_well(top: str) -> None:
    assert "_fits_an_operator(" in fixed(_LAYER.format(top=""), opaque=True)[0]
    declined(_LAYER.format(top=top), because="name `float` for something else", opaque=True)


def test_a_helper_that_calls_it_is_not_written_where_the_file_gives_it_to_something_else() -> None:
    top = "def getattr(a, b, c=None):\n    return False\n"
    declined(_SOURCE.format(top="", name="getattr", body=_ROWS), because="something else")
    assert "is_compiling()" in fixed(_SOURCE.format(top=top, name="n", body=_BRANCH))[0]
