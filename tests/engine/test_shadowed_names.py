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
