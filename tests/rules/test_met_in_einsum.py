"""GM411: rows repeated by counts that `einsum` puts beside a tensor, which tells how many there are."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, shifts, cells, counts: torch.Tensor):
        data = {{"shifts": shifts, "cells": cells, "counts": counts}}
        {body}
        return y
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_COUNTS = ["[1, 2]", "[0, 3]", "[0, 1]"]  # the last is a single row, which is spread
_INPUTS = [f"torch.randn(3, 4), torch.randn(2, 4, 5), torch.tensor({counts})" for counts in _COUNTS]
_INPUTS += [f"torch.randn(0, 4), torch.randn(2, 4, 5), torch.tensor({counts})" for counts in ("[0, 0]", "[1, 0]")]
_CELLS = 'cells = data["cells"].repeat_interleave(data["counts"], dim=0)'
_SUM = 'y = torch.einsum("ij,ijk->ik", data["shifts"].to(cells.dtype), cells)'


def _source(*body: str) -> str:
    return _MODEL.format(body="\n        ".join(body))


def _is_written(*body: str, **settings: object) -> bool:
    return "_repeated_to(" in fixed(_source(*body), **settings)[0]


@pytest.mark.parametrize(
    "body",
    [
        (_CELLS, _SUM),
        ("cells = cells.repeat_interleave(counts, 0)", 'y = torch.einsum("ijk, ij", cells, shifts)'),
        ("cells = torch.repeat_interleave(cells, counts, dim=-3)", 'y = torch.einsum("ij,ijk->jk", shifts, cells)'),
    ],
)
def test_the_tensor_with_the_same_letter_tells_how_many_rows_there_are(body: tuple[str, ...]) -> None:
    source = _source(*body)
    after, _ = fixed(source)
    assert "_repeated_to(" in after
    asked = after.partition("is_compiling()")[2].partition("_repeated_to(")[0]
    assert asked.count("isinstance(") == 3
    assert ".dim() == 1" in asked
    assert fixed(after)[0] == after
    behaves(source, after, _INPUTS, scenarios=_MODES)
    compiles(after, _INPUTS, scenarios=_MODES)


@pytest.mark.parametrize(
    "given",
    [
        "torch.randn(1, 4), torch.randn(2, 4, 5), torch.tensor([2, 1])",  # spread over the rows
        "torch.randn(6, 4), torch.randn(2, 4, 5), torch.tensor([3])",  # one count for all
        "torch.randn(4, 4), torch.randn(2, 4, 5), 2",
    ],
)
def test_where_it_does_not_tell_the_author_s_code_runs(given: str) -> None:
    source = _source(_CELLS, _SUM)
    after, _ = fixed(source)
    behaves(source, after, [given])
    compiles(after, [given], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize(
    "body",
    [
        (_CELLS, _SUM, "y = y + cells.sum()"),  # a single row would be several there
        (_CELLS, 'y = torch.einsum("ij,ijk->ik", shifts, cells) * cells.shape[0]'),
        (_CELLS, "z = shifts + 1", _SUM),
        (_CELLS, "if shifts.dim() == 2:", "    " + _SUM, "else:", "    y = shifts"),
        (_CELLS, _SUM.replace("y = ", "y = shifts if shifts.dim() > 2 else ")),
        (_CELLS, 'y = torch.einsum("...j,...jk->...k", shifts, cells)'),
        (_CELLS.replace("0", "-2"), 'y = torch.einsum("...j,...jk->...k", shifts, cells)'),
        (_CELLS, 'y = torch.einsum("hj,ijk->hk", shifts, cells)'),
        (_CELLS, 'y = torch.einsum("ij,iik->jk", shifts, cells)'),
        (
            "y = 0",
            "for step in range(2):",
            "    y = y + cells.sum()",
            "    " + _CELLS,
            "    " + _SUM.replace("=", "+=", 1),
        ),
        (_CELLS, 'y = torch.einsum("ij,ijk->ik", shifts.abs(), cells)'),  # of no shape that is known
        (_CELLS, 'y = torch.einsum("ijk,ijk->ik", cells, cells)'),
        ("cells = data['cells'].repeat_interleave(data['counts'])", 'y = torch.einsum("i,ij->j", cells, shifts)'),
        ("cells = data['cells'].repeat_interleave(data['counts'], dim=3)", _SUM),
        ("cells = data['cells'].repeat_interleave(data['counts'], dim=0) * 2", _SUM),
    ],
)
def test_other_uses_tell_nothing(body: tuple[str, ...]) -> None:
    assert not _is_written(*body)


def test_without_checks_nothing_is_written() -> None:
    assert not _is_written(_CELLS, _SUM, guards="skip")
