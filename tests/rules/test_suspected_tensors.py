"""Tests of what only seems to be a tensor, by what callers give and functions return: a header asks for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.fixes import checked, fixed

_MODEL = """
import numpy as np
import torch
from torch import nn


def norm(x):
    return x.norm()


def start(measure, y, kind):
    low, high = measure(y).abs(), measure(y * 2).abs()
    {test}


def between(low, y, high, t):
    {between}
    return (high - t) / (high - low) * y


class Model(nn.Module):
    def forward(self, x: torch.Tensor, low=0.0, high=1.0):
        ends = torch.linspace(low, high, 3)
        x = between(ends[0], x, ends[2], ends[1])
        return start(norm, x, x.dtype) * x
"""
_SELECT = "if low < 1e-5 or high < 1e-5:\n        h = low * 0.5\n    else:\n        h = low * 0.01\n    return h"


def graphs(source: str) -> int:
    """How many graphs Dynamo makes of the model for a tensor."""
    names: dict[str, Any] = {}
    exec(compile(source, "subject.py", "exec"), names)
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled: Any = torch.compile(names["Model"](), backend=counter)
    compiled(torch.rand(3))
    return counter.frame_count


def model(test: str = "return low", between: str = "pass") -> str:
    return _MODEL.format(test=test, between=between)


def test_an_assertion_on_what_callers_give_asks_for_tensors() -> None:
    source = model(between="assert low <= t <= high, f'wrong {t}'")
    after, _ = fixed(source)
    for name in ("low", "t", "high"):
        assert f"isinstance({name}, torch.Tensor)" in after
    behaves(source, after, ["(torch.rand(3),)", "(torch.rand(3), 1.0, 0.0)"], scenarios=FEW_SCENARIOS)
    assert graphs(source) > 1
    assert graphs(after) == 1


def test_an_assertion_on_numbers_runs_as_it_stands() -> None:
    source = model(between="assert low <= t <= high, f'wrong {t}'").replace(
        "x = between(ends[0]", "x = between(0.0, x, 1.0, float(low)) + between(ends[0]"
    )
    after, _ = fixed(source)
    assert "isinstance(t, torch.Tensor)" in after
    behaves(source, after, ["(torch.rand(3),)"], scenarios=FEW_SCENARIOS)


def test_a_branch_on_what_a_given_function_returns_asks_for_tensors() -> None:
    source = model(_SELECT)
    after, _ = fixed(source)
    assert "isinstance(low, torch.Tensor)" in after
    assert "isinstance(high, torch.Tensor)" in after
    behaves(source, after, ["(torch.rand(3),)", "(torch.zeros(3),)"], scenarios=FEW_SCENARIOS)
    with torch.no_grad():
        assert graphs(source) > 1
        assert graphs(after) == 1


def test_the_first_input_of_a_forward_is_a_tensor_where_it_is_handed_on() -> None:
    source = model("if low > 0.5:\n        y = y * 2.0\n    return y").replace("x: torch.Tensor, low", "x, low")
    after, _ = fixed(source)
    assert "isinstance(y, torch.Tensor)" in after
    behaves(source, after, ["(torch.rand(3),)", "(torch.zeros(3),)"], scenarios=FEW_SCENARIOS)
    taken_apart = source.replace("ends = torch", "first = x['first']\n        ends = torch")
    assert fixed(taken_apart)[0] == taken_apart


@pytest.mark.parametrize(
    "test",
    [
        "total = np.abs(y.detach().numpy()).max()\n    if total > 1:\n        y = y * 2\n    return y",
        "if kind == torch.float16:\n        y = y * 2\n    return y",
        "rows = y.shape[0]\n    if rows > 2:\n        y = y * 2\n    return y",
    ],
)
def test_arrays_dtypes_and_sizes_get_no_compile_path(test: str) -> None:
    source = model(test)
    assert fixed(source)[0] == source


def test_a_guess_is_left_alone_where_another_break_stays_around_it() -> None:
    inner = _SELECT.replace("\n    ", "\n        ").replace("    return h", "return h")
    source = model(f"if torch.unique(y).numel() > 2:\n        {inner}\n    return low")
    assert fixed(source)[0] == source
    assert any("may be a data-dependent branch" in each.message for each in checked(source).findings)


def test_rules_that_are_not_selected_fix_no_guess() -> None:
    source = model(between="assert low <= t <= high, f'wrong {t}'")
    assert fixed(source, ignore=("GM301",))[0] == source
    found = checked(source, ignore=("GM301",)).findings
    assert any("may be a data-dependent branch" in each.message for each in found)


_TYPES = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, mask):
        {test}
        if mask.min() < 0 or mask.max() > 1:
            raise ValueError("range")
        return mask
"""


@pytest.mark.parametrize(
    ("test", "asks"),
    [
        ("if not isinstance(mask, torch.Tensor):\n            mask = mask * 2", True),
        ("if not isinstance(mask, torch.Tensor):\n            print('no tensor')", True),
        ("if isinstance(mask, torch.Tensor):\n            mask = mask * 2", True),
        ("if not isinstance(mask, torch.Tensor):\n            mask = torch.tensor(mask)", False),
        ("if not isinstance(mask, torch.Tensor):\n            raise TypeError('no tensor')", False),
    ],
)
def test_a_test_of_the_type_proves_it_where_the_other_arm_gives_a_tensor_too(test: str, asks: bool) -> None:
    source = _TYPES.format(test=test)
    after, _ = fixed(source)
    assert ("is_compiling() and isinstance(mask, torch.Tensor)" in after) is asks
    assert "is_compiling()" in after
