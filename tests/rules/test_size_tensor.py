"""Sizes that are joined in a tensor and read back as a list."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

_MODEL = """
import torch
from torch import nn


class Segments:
    def __init__(self, indices, count):
        self.indices = indices
        self.count = torch.as_tensor(count, device=indices.device)

    def shape(self):
        return self.indices.size()[:1]


def spread(shape, count):
    shape = torch.as_tensor(shape, dtype=torch.long)
    count = torch.as_tensor(count)
    whole = torch.cat([torch.ones_like(shape, dtype=torch.long), count.unsqueeze(dim=0)], dim=0)
    new = [int(x) for x in whole.tolist()]
    numbers = torch.arange(0, count).view(new)
    times = torch.cat([shape, torch.as_tensor([1])], dim=0)
    return numbers.repeat(times.tolist())


def reduced(values, segments):
    inner = values.size()[2:]
    flat = torch.cat([torch.as_tensor([-1], dtype=torch.long), torch.as_tensor(inner, dtype=torch.long)], dim=0)
    values = values.reshape(flat.tolist())
    out = torch.zeros(int(segments.count), dtype=torch.float)
    shape = torch.cat(
        [
            torch.as_tensor(segments.shape(), dtype=torch.long),
            torch.as_tensor([segments.count], dtype=torch.long),
            torch.as_tensor(inner, dtype=torch.long),
        ],
    )
    empty = torch.zeros(1).expand(shape.tolist())
    return values, out, empty, spread(segments.shape(), segments.count)


class Model(nn.Module):
    def forward(self, x: torch.Tensor, count=3):
        return reduced(x, Segments(x, count))
"""


def codes(source: str) -> set[str]:
    return {finding.code for finding in checked(source).findings}


def test_lists_of_sizes_stay_lists_under_compile() -> None:
    after, result = fixed(_MODEL, select=("GM402",))
    assert len([each for fix in result.fixes for each in fix.applied]) == 5
    behaves(_MODEL, after, ["torch.ones(2, 4, 5)", "torch.ones(1, 3, 2, 2), 4", "torch.ones(1, 3, 2), 4.0"])
    compiles(after, ["torch.ones(2, 4, 5)"])
    compiles(after, ["torch.ones(2, 4, 5), 7"])
    assert "GM402" not in codes(after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("numbers = torch.arange(0, count).view(new)", "numbers = torch.ones(new[-1] * 2)"),
        ("return numbers.repeat(times.tolist())", "return times, numbers.repeat(times.tolist())"),
        ("return numbers.repeat(times.tolist())", "return numbers * max(times.tolist())"),
        ("[shape, torch.as_tensor([1])]", "[shape, torch.as_tensor([count])]"),
        ("    return numbers.rep", "    times = times + 0 * count\n    return numbers.rep"),
    ],
)
def test_a_tensor_that_is_needed_is_still_one(old: str, new: str) -> None:
    assert old in _MODEL
    before = _MODEL[: _MODEL.index("def reduced")] + "class Model(nn.Module):\n    def forward(self, x, count=3):\n"
    before = (before + "        return spread(x.shape[:1], count)\n").replace(old, new)
    after, _ = fixed(before, select=("GM402",))
    assert "numbers_in_" in after
    behaves(before, after, ["torch.ones(2, 4, 5)", "torch.ones(1, 3), 4"])
    compiles(after, ["torch.ones(2, 4, 5)"], strict=False)


def test_what_is_no_size_is_not_joined() -> None:
    before = _MODEL.replace("[shape, torch.as_tensor([1])]", "[values, torch.as_tensor([1])]")
    reasons = [each.declined for each in fixed(before, select=("GM402",))[1].remaining]
    assert reasons == ["cannot infer that `values` is made of sizes"]


def test_a_number_of_another_kind_of_class_is_left_alone() -> None:
    other = "\n\nclass Other:\n    def __init__(self):\n        self.count = 3\n"
    after, _ = fixed(_MODEL + other, select=("GM402",))
    assert "out = torch.zeros(_as_size(" not in after


_TWICE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        inner = x.shape[2:]
        shape = torch.cat([torch.as_tensor([-1]), torch.as_tensor(inner, dtype=torch.long)])
        y = x.reshape(shape.tolist()) + x.reshape(shape.tolist())
        return y * 2
"""


@pytest.mark.parametrize("between", ["", "        x = x * 2\n"])
def test_a_statement_may_read_the_sizes_twice(between: str) -> None:
    source = _TWICE.replace("        y = ", f"{between}        y = ")
    after, _ = fixed(source)
    name = "numbers_in_shape" if between else "shape"  # nothing may run between a list in its place and its use
    assert f"x.reshape({name}) + x.reshape({name})" in after
    behaves(source, after, ["torch.ones(2, 3, 4, 5)"])
    compiles(after, ["torch.ones(2, 3, 4, 5)"])


def test_a_parameter_that_may_hold_other_sizes_is_left_alone() -> None:
    source = _TWICE.replace("x: torch.Tensor", "x: torch.Tensor, shape=None").replace(
        "        shape =", "        if shape is None:\n            shape ="
    )
    assert fixed(source, select=("GM402",))[0] == source
