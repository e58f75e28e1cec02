"""What an operator's empty results are made by holds nothing that reads data, and no list that a loop would fill."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked, declined

LIST = """
import torch
from torch import nn


def places(grid):
    BOUND
    for height, width in grid.tolist():
        found.append(torch.arange(height * width))
    return torch.cat(found)


class Model(nn.Module):
    def forward(self, x, grid: torch.Tensor):
        return x[places(grid)].sum()
"""

TEST = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask=None):
        places, _ = (torch.argmax(x, dim=-1), 0)
        count, _ = (x.shape[-1], 0)
        if mask is not None and TEST:
            count, _ = (count + 1, 0)
            places, _ = (torch.where(mask, places, torch.tensor(count - 1)), 0)
        return places[..., None] * count
"""


@pytest.mark.parametrize("bound", ["found = []", "found: list = []", "found, count = [], 0", "found = list(()) or []"])
def test_a_list_that_a_loop_fills_has_no_known_size(bound: str) -> None:
    """However the list is bound: an operator's empty result would come of an empty list."""
    declined(LIST.replace("BOUND", bound), "put into `found`", opaque=True)


SHAPE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, shape: torch.Tensor):
        LINES
"""


@pytest.mark.parametrize("lines", ["return x.reshape(shape.tolist())", "sizes = shape.tolist(); return x.view(*sizes)"])
def test_a_list_of_sizes_that_may_hold_minus_one_is_no_list_of_symbols(lines: str) -> None:
    declined(SHAPE.replace("LINES", lines), "may be -1", opaque=True)


@pytest.mark.parametrize("test", ["mask.sum().item() < mask.shape[0]", "int(mask.sum()) < 2", "max(mask.sum(), 1) < 2"])
def test_a_test_that_reads_a_number_of_the_data_is_not_one_of_python(test: str) -> None:
    found = checked(TEST.replace("TEST", test), opaque=True).findings
    assert [each.code for each in found if each.edit is not None and each.safety.value == "opaque"] == []
