"""GM511: what the list of integers that stands for a list of bools takes for granted."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed, noop

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, table, other, kinds=("a", "b")):
        chosen = [kind == "b" for kind in kinds]
        more = [kind == "a" for kind in kinds]
        y = READ
        return y
"""


@pytest.mark.parametrize(
    ("read", "because"),
    [
        ("x[None, chosen]", "which dimension"),
        ("x[other, chosen]", "which dimension"),
        ("x[..., chosen, ...]", "which dimension"),
        ("x[chosen] + x[more]", "which dimension"),
        ("x[0 if other else 1, chosen]", "which dimension"),
        ("(x + 1)[chosen]", "computed twice"),
    ],
)
def test_an_index_whose_dimension_is_not_plain_is_left_alone(read: str, because: str) -> None:
    declined(_MODEL.replace("READ", read), because)


def test_without_a_name_for_torch_nothing_is_written() -> None:
    source = _MODEL.replace("READ", "x[chosen]").replace("table, other", "torch, other")
    declined(source, "torch")


@pytest.mark.parametrize("made", ["list(kinds)", "[len(kind) for kind in kinds]", "torch.ones(2)"])
def test_what_is_no_list_of_comparisons_is_no_list_of_bools(made: str) -> None:
    source = _MODEL.replace("READ", "x[chosen]").replace('[kind == "b" for kind in kinds]', made)
    assert "places" not in fixed(source)[0]


def test_a_list_that_indexes_no_tensor_is_asked_for() -> None:
    after, _ = fixed(_MODEL.replace("READ", "table[chosen]"))
    assert "and isinstance(table, torch.Tensor) and len(chosen) == table.shape[0]" in " ".join(after.split())
    noop(_MODEL.replace("READ", "kinds[0]"))


def test_places_in_front_and_behind_an_ellipsis_are_those_of_the_mask() -> None:
    after, _ = fixed(_MODEL.replace("READ", "x[:, chosen, 0] + x[..., chosen, -1]"))
    assert "len(chosen) == x.shape[1]" in after
    assert "len(chosen) == x.shape[-2]" in after
    compiles(after, ["torch.arange(12.0).view(2, 2, 3), None, None", "torch.ones(2, 2, 3), None, None, ('b', 'b')"])
