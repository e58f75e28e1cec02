"""GM105: what a branch that writes state may not do beside it."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(3))
        self.register_buffer("b", torch.zeros(3))
        self.register_buffer("done", torch.tensor(False))

    def forward(self, x: torch.Tensor, t: torch.Tensor, flag: bool, name: str):
{body}
        return x + self.a
"""
_WRITTEN = "    self.a = self.b * 2"
_OTHER = ["else:", "    self.a = self.b * 3"]
_FILLED = ["    self.a.copy_(x)", "    self.done.fill_(True)"]


def _declined(lines: list[str], because: str) -> None:
    body = "\n".join(f"        {line}" for line in lines)
    declined(_MODEL.replace("{body}", body), because, select=("GM105",))


@pytest.mark.parametrize(
    ("lines", "because"),
    [
        (["if flag and t.sum() > 0:", _WRITTEN, *_OTHER], "are combined in one condition"),
        (["if t.sum() > 0:", _WRITTEN, "else:", "    self.register_buffer('a', self.b * 3)"], "written differently"),
        (["if t.sum() > 0:", _WRITTEN, "    x.a = 3", *_OTHER], "something other than an attribute of `self`"),
        (["if t.sum() > 0:", _WRITTEN, "    print(3)", *_OTHER], "`print(3)` may have side effects"),
        (["if t.sum() > 0:", "    self.register_buffer(name, self.b * 2)", *_OTHER], "name is not a constant"),
        (["if t.sum() > 0:", _WRITTEN, "    self.a = self.b * 4", *_OTHER], "written twice in one branch"),
    ],
)
def test_branches_that_do_more_than_write_one_attribute_each_are_left_alone(lines: list[str], because: str) -> None:
    _declined(lines, because)


@pytest.mark.parametrize(
    "lines",
    [
        ["if not self.done:", *_FILLED],
        ["if not self.done:", "    self.a.data = x.detach()", _FILLED[1]],
        ["if flag:", "    pass", "elif not self.done:", *_FILLED],
    ],
)
def test_a_branch_that_initialises_is_left_alone(lines: list[str]) -> None:
    _declined(lines, "the attributes are written in only one branch")


_COUNTING = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            self.seen = x
        return self.seen + 1
"""
_COUNTS = """
    def __setattr__(self, name, value):
        self.__dict__["writes"] = self.__dict__.get("writes", 0) + 1
        super().__setattr__(name, value)
"""


@pytest.mark.parametrize("heir", [False, True], ids=["its own", "of an heir"])
def test_a_class_that_is_told_of_writes_gets_none_that_a_branch_skips(heir: bool) -> None:
    assert "torch.where(" in fixed(_COUNTING)[0]
    counting = f"{_COUNTING}\n\nclass Counting(Model):{_COUNTS}" if heir else _COUNTING + _COUNTS
    declined(counting, because="`__setattr__` of its class may do more than write")
