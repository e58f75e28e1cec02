"""Loops over tensors of numbers: the elements are followed like numbers that have a name (GM402)."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_HEAD = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
"""
_ENDS = "ends = torch.LongTensor([2, x.shape[0]])\n"
_SIZES = "sizes = [(2, 3), (1, x.shape[0])]\nshapes = torch.tensor(sizes)\n"


def model(body: str) -> str:
    return _HEAD + "".join(f"        {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(
    "body",
    [
        f"{_ENDS}total = 0\nfor end in ends:\n    total += end\nreturn x[:, :total]",
        f"{_ENDS}return torch.cat([x[:, :end] * end for _, end in zip([1, 2], ends)], 1)",
        f"{_SIZES}for height, width in shapes:\n    x = x + torch.ones(width).sum() * (height - 0.5)\nreturn x",
    ],
)
def test_what_a_loop_takes_out_of_a_tensor_is_a_number(body: str) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "is_compiling()" in after
    compiles(after, ["torch.ones(3, 8)", "torch.ones(2, 8)"])


@pytest.mark.parametrize(
    ("body", "because"),
    [
        (f"{_ENDS}for end in ends:\n    x = x[:, :end] + (end * 0.5).sum()\nreturn x", "on a Python number"),
        (
            f"{_ENDS}s = x.sum()\nfor end in ends:\n    y = end * s\n    x = x[:, :end] + y\nreturn y",
            "need a Tensor",
        ),
        (f"{_ENDS}for end in ends:\n    x = x[:, :end]\nreturn x * end.float()", "on a Python number"),
        (
            f"{_ENDS}k = torch.tensor(2, dtype=torch.int32)\nfor end in ends:\n    k = k * end\nreturn x[:, :k], k",
            "binds `k`",
        ),
        (f"{_ENDS}d = {{}}\nfor end in ends:\n    d[end] = x[:, :end]\nreturn x * len(d)", "may need a Tensor"),
        (
            f"{_SIZES}for height, width in shapes:\n    x = torch.ones(width) * (height / 3)\nreturn x",
            "need a Tensor",
        ),
    ],
)
def test_elements_that_may_be_needed_as_tensors_stay_there(body: str, because: str) -> None:
    declined(model(body), because)
