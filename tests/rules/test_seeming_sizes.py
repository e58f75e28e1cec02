"""Sizes that only seem to be tensors, by what callers give: the graph carries those that are (GM802)."""

from __future__ import annotations

import pytest

from tests.rules.unbacked_models import CODE, model
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

MASK = """
import torch
from torch import nn


def mask_of(lengths, longest=None):
    if longest is None:
        longest = lengths.max()
    {statement}
    return steps < lengths[:, None]


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor):
        known = mask_of(lengths, x.shape[1])
        return (x * mask_of(lengths)).sum() + (x * known).sum()
"""
ARANGE = MASK.format(statement="steps = torch.arange(longest, device=lengths.device)[None]")
INPUTS = (
    "torch.randn(3, 4), torch.tensor([2, 1, 4])",
    "torch.randn(3, 5), torch.tensor([5, 5, 1])",
)


@pytest.mark.parametrize(
    "statement",
    [
        "steps = torch.arange(longest, device=lengths.device)[None]",
        "steps = torch.zeros(len(lengths), longest)",
        "steps = lengths.new_ones(len(lengths), longest)",
        "steps = torch.arange(99)[:longest][None]",
    ],
    ids=["arange", "ones", "new_ones", "slice"],
)
def test_a_size_that_is_a_tensor_is_carried_and_a_number_stays_one(statement: str) -> None:
    after, _ = fixed(MASK.format(statement=statement), **CODE)
    assert after.count("if torch.compiler.is_compiling() and isinstance(longest, torch.Tensor):") == 1
    assert statement in after
    compiles(after, INPUTS)


def test_one_of_two_sizes_may_be_the_tensor() -> None:
    after, _ = fixed(MASK.format(statement="steps = torch.zeros(longest, longest + 1).sum()"), **CODE)
    assert "torch.zeros(_number_in_graph(longest), _number_in_graph(longest + 1))" in after
    compiles(after, INPUTS)


def test_a_tensor_that_is_read_twice_is_one_size() -> None:
    source = model(
        "longest = lengths.max()",
        "rows = torch.zeros(3, longest)",
        "more = torch.arange(longest, dtype=torch.float32)",
        "return x.sum() + nn.functional.mse_loss(rows[0], more)",
    )
    after, _ = fixed(source, **CODE)
    assert after.count("_number_in_graph(longest)") == 2
    compiles(after, ("torch.randn(3, 4), torch.ones(3, dtype=torch.bool), torch.tensor([2, 1, 3])",))


def test_a_limit_with_a_fraction_is_no_whole_number() -> None:
    source = ARANGE.replace("lengths.max()", "lengths.max() * 1.5").replace("return steps", "return steps[:, :4]")
    after, _ = fixed(source, **CODE)
    compiles(after, ("torch.randn(3, 4), torch.tensor([2, 1, 4])",), strict=False)


@pytest.mark.parametrize("given", ["x.shape[1]", "4", "len(x)"])
def test_numbers_alone_are_left_alone(given: str) -> None:
    source = ARANGE.replace("longest = lengths.max()", "longest = 3").replace("x.shape[1]", given)
    assert not [each for each in checked(source, **CODE).findings if each.edit is not None]


def test_a_list_is_cut_as_before() -> None:
    source = MASK.format(statement="steps = [0, 1, 2, 3][:longest]").replace(
        "return steps", "return torch.tensor(steps)"
    )
    assert not [each for each in checked(source, **CODE).findings if each.edit is not None]


_FORWARD = """
import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, {given}):
        {statements}
"""
_NO_TENSORS = {
    "a size that a star spreads": (
        "x, y",
        "_, n, _, device = *y.shape, y.device\n        n = torch.arange(n, device=device)\n        return n.float()",
    ),
    "a size behind what a star spreads": (
        "x, y",
        "device, n = y.device, *y.shape[:1]\n        n = torch.arange(n, device=device)\n        return x + n.float()",
    ),
    "the first input, at which a range ends": ("n, device", "return torch.arange(n, device=device)"),
    "an array": ("x, labels", "labels = labels.cpu().numpy()\n        return x.cpu().numpy()[labels == 1]"),
    "an array that was a tensor": (
        "x, labels",
        "x, labels = x.cpu(), labels.cpu()\n        x = x.numpy()\n        labels = labels.numpy()\n"
        "        return [x[labels == i, :] for i in range(3)]",
    ),
}


@pytest.mark.parametrize("case", _NO_TENSORS)
def test_what_is_no_tensor_gets_no_symbol(case: str) -> None:
    given, statements = _NO_TENSORS[case]
    source = _FORWARD.format(given=given, statements=statements)
    assert not [each for each in checked(source, **CODE).findings if each.edit is not None]


@pytest.mark.parametrize(
    ("given", "statements"),
    [
        ("x, y", "*_, n, m = *y, x\n        return torch.arange(int(n.sum()))"),
        ("x, y: list", "n, m = *y, x.device\n        return torch.arange(n.max())"),
        ("x, labels", "labels = labels.cpu()\n        return x.cpu()[labels == 1]"),
    ],
)
def test_what_may_be_a_tensor_beside_them_is_carried(given: str, statements: str) -> None:
    source = _FORWARD.format(given=given, statements=statements)
    assert [each for each in checked(source, **CODE).findings if each.edit is not None]
