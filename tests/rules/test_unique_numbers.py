"""GM601: integers that NumPy makes unique, as a list of the same integers."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed

_MODEL = """
import numpy as np
import torch
from torch import nn


class Counter:
    @staticmethod
    def int(number):
        return 1 if isinstance(number, np.integer) else 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = {levels}

    def forward(self, x):
        levels = {made}
        for level in levels:
            x = x + {read} % 1000
        return x
"""
_LIST = "sorted(set(self.levels))"


def model(made: str = "np.unique(self.levels)", read: str = "int(level)", levels: str = "[2, 0, 2]") -> str:
    return _MODEL.format(made=made, read=read, levels=levels)


@pytest.mark.parametrize("levels", ["[2, 0, 2]", "[-1, 2**63 + 1]", "[-1, 2**80]"])
def test_integers_that_an_array_changes_are_left_to_it(levels: str) -> None:
    after, _ = fixed(model(levels=levels))
    assert _LIST in after
    compiles(after, ["torch.ones(2, dtype=torch.double)"], strict=levels == "[2, 0, 2]")


@pytest.mark.parametrize(
    "changes", [{"made": "np.unique(self.levels).astype(np.int32)"}, {"read": "Counter.int(level)"}]
)
def test_what_may_see_numbers_of_numpy_gets_them(changes: dict[str, str]) -> None:
    assert _LIST not in fixed(model(**changes))[0]
