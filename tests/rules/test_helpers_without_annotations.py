"""Masks and tensors that functions without an annotation return: what their text says is asked for in a header."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, embedded, fixed
from tests.tools.observe import Scenario

_MODEL = """
import warnings
from typing import Union

import torch
from torch import nn


def is_known(labels) -> Union[bool, torch.Tensor]:
    return labels >= 0


def sequence_mask(lengths, n):
    steps = torch.arange(n, device=lengths.device)
    return steps[None] < lengths[:, None]


def average(x):
    return x.mean()


def seen(labels):
    print(labels)
    return labels >= 0


class Model(nn.Module):
    def forward(self, x: torch.Tensor, labels: torch.Tensor, limit: int = 2):
        ...
        return x
"""
_INPUTS = [
    "torch.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]]), torch.tensor([[1, -1, 0], [-1, -1, 2]])",
    "torch.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]]), torch.tensor([[1, 1, 0], [1, 1, 2]])",
]
_NO_GRADIENTS = [Scenario()]


def _source(body: str) -> str:
    return embedded(body, _MODEL)


@pytest.mark.parametrize(
    "body",
    [
        "known = is_known(labels)\nlosses = torch.zeros_like(x)\nlosses[known] = x[known].exp()\nx = losses",
        "known = is_known(labels)\nx = x[known].sum()",
        "mask = sequence_mask(labels[:, 0] + 2, x.shape[1])\nx = x[mask].sum()",
        "y = average(x)\nif y > 0.1:\n    x = x * 2",
        "known = is_known(labels)\nif known.all():\n    x = x + 1",
    ],
)
def test_what_the_text_of_a_function_says_is_asked_for(body: str) -> None:
    before = _source(body)
    after, _ = fixed(before)
    assert "torch.compiler.is_compiling()" in after
    behaves(before, after, _INPUTS, scenarios=_NO_GRADIENTS)
    compiles(after, _INPUTS)


def test_a_mask_that_turns_out_to_be_a_bool_takes_the_path_of_the_author() -> None:
    before = _source("known = is_known(labels)\nx = x[known].sum()")
    after, _ = fixed(before)
    assert "isinstance(known, torch.Tensor)" in after
    inputs = ["torch.ones(2, 3), 4", "torch.ones(2, 3), -4"]
    behaves(before, after, inputs, scenarios=_NO_GRADIENTS)
    compiles(after, inputs)


def test_a_number_that_is_given_stays_a_number() -> None:
    assert not checked(_source("if is_known(limit):\n    x = x * 2")).findings


def test_a_test_by_a_function_that_only_computes_is_not_read_in_compiled_code() -> None:
    before = _source("if is_known(labels).any():\n    warnings.warn('known')\nx = x * 2")
    after, _ = fixed(before)
    assert "if not torch.compiler.is_compiling() and is_known(labels).any():" in after
    behaves(before, after, _INPUTS, scenarios=_NO_GRADIENTS)
    compiles(after, _INPUTS)


def test_a_test_by_a_function_that_does_more_is_kept() -> None:
    after, _ = fixed(_source("if seen(labels).any():\n    warnings.warn('known')"))
    assert "is_compiling() and seen(labels)" not in after


@pytest.mark.parametrize(
    ("index", "named"),
    [
        ("[x[i, lengths[i] - 1] for i in range(2)]", True),
        ("[x[i, n - 1] for i, n in enumerate(lengths)]", True),
        ("[x[torch.arange(2), lengths - 1]]", False),
        ("[x[rows, lengths[rows] - 1]]", False),
    ],
)
def test_one_length_as_an_index(index: str, *, named: bool) -> None:
    given = "x: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor"
    source = f"import torch\nclass Model(torch.nn.Module):\n    def forward(self, {given}):\n        return {index}\n"
    assert any("0-dim" in each.message for each in checked(source).findings) is named
