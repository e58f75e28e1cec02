"""Rows that a loop fills up to a place that a tensor says."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, embedded, fixed
from tests.tools.observe import Scenario

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        mask = torch.zeros(x.shape[:2], device=x.device)
        ...
        return mask * 2
"""
_INPUTS = [
    "torch.ones(3, 4), torch.tensor([2, 0, 4])",
    "torch.ones(3, 4, 2), torch.tensor([-1, -9, 9], dtype=torch.int32)",
    "torch.ones(3, 4), torch.tensor([-3, 1, -4])",
]


def written(statements: str) -> str:
    return embedded(statements, _SETUP)


@pytest.mark.parametrize(
    "statements",
    [
        "for i, n in enumerate(lengths):\n    mask[i, :n] = 1",
        "mask = torch.ones(3, 4, dtype=torch.float32)\nfor i, n in enumerate(lengths):\n    mask[i, n:] = -0.5",
        "mask = torch.zeros(3, 4)\nfor i, n in enumerate(lengths):\n    mask[i, n:] = -0.5",
        "mask = torch.zeros(3, 4, dtype=torch.bool)\nfor i in range(mask.shape[0]):\n    mask[i, : lengths[i]] = True",
        "mask = torch.zeros(3, 4, dtype=torch.half)\nfor i, n in enumerate(lengths):\n    mask[i, n:] = float('-inf')",
        "mask = torch.zeros(3, 4)\nfor i, n in enumerate(lengths):\n    mask[i, n:] = torch.finfo(mask.dtype).min",
        "mask = torch.zeros_like(x)\nfor i in range(lengths.size(0)):\n    mask[i, lengths[i] :] = 3",
        "mask = torch.ones(3, 4, dtype=torch.uint8)\nkept = mask\n"
        "for i, n in enumerate(lengths):\n    mask[i, :n] = 0\nmask = mask + kept",
    ],
)
def test_rows_are_filled_as_the_loop_fills_them(statements: str) -> None:
    after, result = fixed(written(statements))
    assert [finding.code for fix in result.fixes for finding in fix.applied] == ["GM508"]
    behaves(written(statements), after, _INPUTS)
    compiles(after, _INPUTS)
    assert checked(after).findings == ()


def test_what_is_no_length_for_each_row_runs_the_loop() -> None:
    source = written("for i, n in enumerate(lengths):\n    mask[i, :n] = 1")
    after, _ = fixed(source)
    inputs = [
        "torch.ones(3, 4), torch.tensor([2, 1])",
        "torch.ones(2, 4), torch.tensor([1, 2, 3])",
        "torch.ones(2, 4), torch.tensor([1.0, 2.0])",
        "torch.ones(2, 4), torch.tensor(1)",
        "torch.ones(2, 300), torch.tensor([-5, 3], dtype=torch.int8)",
        "torch.ones(2, 4), torch.tensor([True, False])",
    ]
    behaves(source, after, inputs)
    compiles(after, [inputs[0], *inputs[-2:]], strict=False)


@pytest.mark.parametrize(
    ("statements", "because"),
    [
        ("for i, n in enumerate(lengths):\n    mask[i, :n] = 1\nmask = mask * n", "`n` is used after the loop"),
        ("lengths = mask[0]\nfor i, n in enumerate(lengths):\n    mask[i, :n] = 1", "may share storage"),
        ("for i, n in enumerate(lengths):\n    mask[i, :n] = self.value", "is not a Python number"),
        ("for i, n in enumerate(lengths):\n    mask[i, :n] = -self.value", "is not a Python number"),
    ],
)
def test_a_loop_that_does_more_is_left_alone(statements: str, because: str) -> None:
    declined(written(statements), because, select=("GM508",))


@pytest.mark.parametrize(
    "statements",
    [
        "for i, n in enumerate(lengths, 1):\n    mask[i, :n] = 1",
        "for i, n in enumerate(lengths):\n    mask[i, :n:2] = 1",
        "for i, n in enumerate(lengths):\n    mask[n, :i] = 1",
        "for i in range(2):\n    mask[i, : lengths[i]] = 1",
        "for i, n in enumerate(lengths):\n    mask[i, 1:n] = 1",
    ],
)
def test_another_form_is_no_business_of_this_rule(statements: str) -> None:
    assert checked(written(statements), select=("GM508",)).findings == ()


@pytest.mark.parametrize(
    "lengths",
    [
        "torch.tensor([-1, 5, -100], dtype=torch.int8)",
        "torch.tensor([1.0, 2.0, 3.0])",
        "[1, 2, 3]",
        "torch.ones(2).long()",
    ],
)
def test_lengths_that_are_not_what_their_annotation_says_are_read_by_the_loop(lengths: str) -> None:
    source = written("for i, length in enumerate(lengths):\n    mask[i, :length] = 1")
    after, _ = fixed(source, select=("GM508",))
    compiles(after, [f"torch.ones(3, 200), {lengths}"], scenarios=[Scenario(gradients="off")], strict=False)


_UNANNOTATED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, lengths):
        x = x * 1
        return self.filled(x, lengths) * 2

    def filled(self, x, lengths):
        {loop}
        return x
"""


@pytest.mark.parametrize(
    "loop",
    [
        "for i, n in enumerate(lengths):\n            x[i, int(n) :] = 0",
        "for i in range(x.size(0)):\n            x[i, : lengths[i].item()] = -1.5",
        "count = len(x)\n        for i in range(count):\n            x[i, lengths[i] :] = 0",
    ],
)
def test_what_has_no_annotation_is_asked_for(loop: str) -> None:
    source = _UNANNOTATED.format(loop=loop)
    after, _ = fixed(source, select=("GM508",))
    assert "is_compiling()" in after
    inputs = ["torch.rand(3, 4), torch.tensor([2, -1, 9])"]
    behaves(source, after, inputs)
    compiles(after, inputs)
    # What is given twice, a list, more lengths than rows, one row in the place of several.
    others = ["torch.ones(3, 4).long(), torch.tensor([2, 1, 0])", "torch.rand(2, 4), [1, 2]"]
    others.append("torch.rand(1, 4).expand(2, 4), torch.tensor([1, 2])")
    compiles(after, [*others, "torch.rand(2, 4), torch.tensor([1, 2, 3])"], strict=False)
