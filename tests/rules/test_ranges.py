"""Sizes of ranges: what is known of them, and what may have changed since."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def later(self, positions):
        length = positions[-1] + 1
        return torch.arange(length) > positions.reshape(-1, 1)

    def forward(self, x, start=0, positions=None):
        if positions is None:
            positions = torch.arange(start, start + x.shape[0], device=x.device)
        mask = self.later(positions)
        return x.sum() * mask
"""


def codes(source: str) -> set[str]:
    return {finding.code for finding in checked(source).findings if finding.fixable}


def test_a_range_that_does_not_start_at_zero_keeps_its_end() -> None:
    after, _ = fixed(_MODEL)
    behaves(_MODEL, after, ["torch.ones(3)", "torch.ones(2), 4", "torch.ones(2), 0, torch.tensor([1, 5])"])
    compiles(after, ["torch.ones(3)"])
    compiles(after, ["torch.ones(3), 2"])


def test_positions_that_somebody_gives_keep_the_original_expression() -> None:
    after, _ = fixed(_MODEL)
    behaves(_MODEL, after, ["torch.ones(3), 0, torch.tensor([7, 9, 8])"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        mask =", "        positions.add_(1)\n        mask ="),
        ("        mask =", "        positions[0] = 9\n        mask ="),
        ("        mask =", "        positions = positions + 1\n        mask ="),
        ("        length =", "        positions = positions * 2\n        length ="),
        ("start + x.shape[0], device", "start + self.limit, device"),
        ("length = positions[-1]", "length = positions[0]"),
        ("return torch.arange(length) >", "return length +"),
    ],
)
def test_a_size_that_is_not_the_end_of_the_range_is_left_alone(old: str, new: str) -> None:
    assert "GM402" not in codes(_MODEL.replace(old, new))


_LOOPED = """        for part in (1, 2):
            mask = self.later(positions)
            self.tell(positions)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        mask =", "        self.tell(positions)\n        mask ="),
        ("        mask =", "        kept = positions[None]\n        self.tell(kept)\n        mask ="),
        ("        length =", "        self.tell(positions)\n        length ="),
        ("        mask = self.later(positions)\n", _LOOPED),
        ("        return x.sum()", "        yield mask\n        self.tell(positions)\n        return x.sum()"),
    ],
)
def test_positions_that_may_be_written_before_they_are_read_keep_the_size(old: str, new: str) -> None:
    assert _MODEL.count(old) == 1
    declined(_MODEL.replace(old, new), because="may write in place to `positions` or a view of it")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return x.sum()", "        if x.dim() > 4:\n            self.tell(positions)\n        return x.sum()"),
        ("        return torch.arange", "        self.tell = positions\n        return torch.arange"),
    ],
)
def test_what_happens_behind_the_last_reader_does_not_matter(old: str, new: str) -> None:
    source = _MODEL.replace(old, new)
    after, _ = fixed(source)
    assert "end_of_positions" in after
    compiles(after, ["torch.ones(3)"])


def test_a_method_that_another_class_replaces_gets_no_new_argument() -> None:
    heir = "\n\nclass Other(Model):\n    def later(self, positions):\n        return positions > 0\n"
    declined(_MODEL + heir, because="another class replaces `Model.later`")


def test_a_function_that_takes_anything_gets_no_new_argument() -> None:
    declined(_MODEL.replace("(self, positions):", "(self, positions, **more):"), because="parameters other than plain")


def test_a_range_in_a_block_of_its_own_is_left_alone() -> None:
    made = "        if positions is None:\n            positions ="
    inner = "        if start:\n            if positions is None:\n                positions ="
    assert made in _MODEL
    assert "GM402" not in codes(_MODEL.replace(made, inner))


def test_a_number_of_a_floating_dtype_is_not_counted_from() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        start = x.sum()
        places = torch.arange(start, start + 4)
        return places * x.sum()
"""
    after, _ = fixed(source)
    assert "start.dtype == torch.int64" in after
    behaves(source, after, ["torch.ones(3) / 2", "torch.ones(3, dtype=torch.long)"])
    compiles(after, ["torch.ones(3, dtype=torch.long)"])


def test_a_range_between_elements_of_a_tensor_is_named() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def distances(self, at: torch.Tensor, other=None, step=2):
        if other is None:
            other = at
        most = other[0] - at[0] + step * len(other)
        least = other[0] - at[-1]
        return torch.arange(most, least - 1, -step)

    def forward(self, x: torch.Tensor):
        return self.distances(x)
"""
    found = [each for each in checked(source).findings if "torch.arange(most, least - 1, -step)" in each.message]
    assert [each.message.partition(":")[0] for each in found] == ["uses a tensor as a size (device sync)"]
