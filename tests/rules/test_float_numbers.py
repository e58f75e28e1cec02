"""A float that NumPy computes from Python numbers is read without a break, an integer is not: findings say the same."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch

from tests.tools.fixes import checked

_MODULE = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = 3

    def forward(self, x: torch.Tensor):
        rows = self.rows
        share = x.shape[0] / 3
        {statement}
        return x + n
"""

FLOATS = [
    "n = int(np.ceil(x.shape[0] / rows))",
    "n = int(np.ceil(x.shape[0] / 3) * 2)",
    "n = int(np.round(share))",
    "n = int(np.floor(share + 1))",
    "n = float(np.log(2))",
    "n = int(np.sqrt(x.shape[1]))",
    "n = int(np.abs(-2.5))",
    "n = float(np.maximum(share, 2))",
    "share = share * 2\n        n = int(np.ceil(share))",
]
INTEGERS = [
    "n = int(np.ceil(rows))",
    "n = int(np.maximum(x.shape[0], 2))",
    "n = float(np.abs(rows))",
    "n = int(np.ceil(rows) * 2)",
    "n = int(np.ceil(x.numpy().max() / 2))",
    "n = int(np.ceil(x.max() / 2))",
]


@pytest.mark.parametrize("statement", FLOATS)
def test_a_float_of_numbers_is_no_tensor_read_back(statement: str) -> None:
    source = _MODULE.format(statement=statement)
    assert checked(source).findings == ()
    assert _breaks(source) == 0


@pytest.mark.parametrize("statement", INTEGERS)
def test_an_integer_or_a_tensor_is(statement: str) -> None:
    source = _MODULE.format(statement=statement)
    assert [finding.code for finding in checked(source).findings][:1] in (["GM703"], ["GM401"], ["GM601"])
    assert _breaks(source) > 0


def _breaks(source: str) -> int:
    names: dict[str, object] = {"np": np}
    exec(compile(textwrap.dedent(source), "<model>", "exec"), names)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model: torch.nn.Module = eval("Model()", names)
    torch.compile(model, backend="eager")(torch.ones(4, 4))
    return sum(torch._dynamo.utils.counters["graph_break"].values())
