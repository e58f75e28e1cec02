"""Who may read a name after a statement, besides the statements that follow."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, embedded, fixed

_SETUP = """
import contextlib

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor, more=False):
        mask = torch.zeros(x.shape[:2])
        i = 5
        ...
        return mask
"""
_LOOP = "for i, n in enumerate(lengths):\n{}mask[i, :n] = 1"
_HERE, _INSIDE = _LOOP.format("    "), "    " + _LOOP.format("        ")


@pytest.mark.parametrize(
    "statements",
    [
        f"read = lambda: i\n{_HERE}\nmask = mask + read()",
        f"def read():\n    return i\n{_HERE}\nmask = mask + read()",
        f"read = (i for _ in range(1))\n{_HERE}\nmask = mask + next(read)",
        f"global i\n{_HERE}",
        f"{_HERE}\nmask = mask + locals()['i']",
        f"class Read:\n    def read(self):\n        return i\n{_HERE}\nmask = mask + Read().read()",
        f"try:\n{_INSIDE}\n    return mask\nfinally:\n    self.last = i",
        f"try:\n{_INSIDE}\n    i = x.view(7)\nexcept RuntimeError:\n    self.last = i",
        f"while True:\n{_INSIDE}\n    if more:\n        break\n    i = 0\nmask = mask + i",
        f"for _ in range(2):\n    mask = mask + i\n{_INSIDE}\n    if more:\n        continue\n    i = 0",
        f"while True:\n{_INSIDE}\n    match more:\n        case 1:\n            break\n    i = 0\nmask = mask + i",
        f"{_HERE}\nwith contextlib.suppress(RuntimeError):\n    i = x.view(7)\nmask = mask + i",
    ],
)
def test_a_name_that_somebody_may_read_is_alive(statements: str) -> None:
    declined(embedded(statements, _SETUP), because="is used after the loop", select=("GM508",))


@pytest.mark.parametrize(
    "statements",
    [
        f"read = lambda i: i\n{_HERE}\nmask = mask + read(2)",
        f"def read():\n    i = 2\n    return i\n{_HERE}\nmask = mask + read()",
        f"{_HERE}\ni = 3\nmask = mask + i",
        f"mask += sum(i for i in range(3))\n{_HERE}",
        f"{_HERE}\nfor j in range(3):\n    break\ni = 0\nmask = mask + i",
        f"try:\n{_INSIDE}\n    return mask\nfinally:\n    self.last = 2",
    ],
)
def test_a_name_that_nobody_reads_is_not(statements: str) -> None:
    _, result = fixed(embedded(statements, _SETUP), select=("GM508",))
    assert sum(len(change.applied) for change in result.fixes) == 1
