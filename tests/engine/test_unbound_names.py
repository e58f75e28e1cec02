"""A header never asks about a name that only a comprehension binds: compiled code would end in a NameError."""

from __future__ import annotations

from tests.tools.fixes import declined, fixed

SOURCE = """
import numpy as np
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.shapes = shapes

    def forward(self, x):
        {before}
        sizes = [np.prod(shape) for shape in self.shapes]
        return x.split([int(size) for size in sizes], -1)
"""


def test_a_variable_of_a_comprehension_is_not_asked_about() -> None:
    declined(SOURCE.format(before="pass"), because="`shape` is bound only by a comprehension")


def test_a_name_that_the_function_binds_as_well_may_be_asked_about() -> None:
    source = SOURCE.format(before="shape = self.shapes[0]").replace("for shape in", "for other in")
    assert "[np.prod(shape) for other" in source

    assert "math.prod(shape)" in fixed(source)[0]
