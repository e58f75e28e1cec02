"""Conditions as text: each is asked once, and names are told from attributes, keywords and strings."""

from __future__ import annotations

from graphmend_codemod.core.findings import CompilePath
from graphmend_codemod.rules.framework.conditions import names_in, once, renamed
from tests.tools.fixes import fixed

INDEXES = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            return x[1] * 2
        return x[5] + 1
"""


def test_what_a_condition_asks_already_is_asked_once() -> None:
    asked = ["compiling()", "x.dim() > 0 and x.shape[0] > 1", "x.dim() > 0 and x.shape[0] > 5", "x.dim() > 0"]
    assert [*once(asked)] == ["compiling()", "x.dim() > 0 and x.shape[0] > 1", "x.shape[0] > 5"]


def test_a_part_of_an_or_is_asked_again() -> None:
    asked = ["x.dim() > 0 or y", "x.dim() > 0"]
    assert [*once(asked)] == asked


def test_a_header_asks_once_for_the_dimensions_that_two_indexes_need() -> None:
    after = fixed(INDEXES)[0]
    header = after[after.index("is_compiling()") : after.index(":\n", after.index("is_compiling()"))]
    assert header.count("x.dim() > 0") == 1
    assert "x.shape[0] > 1" in header
    assert "x.shape[0] > 5" in header


def test_names_are_renamed_and_nothing_that_is_spelled_alike() -> None:
    text = "y.any() and f(y=y.y, z='y')\nand (\n    not y\n)"
    assert renamed(text, {"y": "late_y"}) == "late_y.any() and f(y=late_y.y, z='y')\nand (\n    not late_y\n)"
    assert names_in([text]) == {"y", "f"}


def test_what_is_put_around_the_beginning_of_a_path_belongs_to_it() -> None:
    path = "# why\n" + CompilePath("if c:", ["c"]) + "\n    pass"
    assert isinstance(path, CompilePath)
    assert (path, path.conditions) == ("# why\nif c:\n    pass", ("c",))
    assert path.asking("d") == "# why\nif c and d:\n    pass"
    assert path.asking("d").conditions == ("c", "d")
