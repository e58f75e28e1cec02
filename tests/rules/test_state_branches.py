"""GM105: what a branch that writes state may not do beside it."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined

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
    ("lines", "because"),
    [
        (["if flag:", "    pass", "elif not self.done:", *_FILLED], "the branch is one of several"),
        (["if not self.done:", "    with open('f'):", "        self.a.copy_(x)"], "`open('f')` may have effects"),
        (["if not self.done:", "    for i in range(3):", "        self.a.copy_(x)"], "does more than assign tensors"),
        (["if not self.done:", "    assert x.sum() > 0", *_FILLED], "may raise where eager mode skips it"),
        (["if not self.done:", "    x[0] = 1", *_FILLED], "`x[0]` is not a tensor of the instance"),
        (["if not self.done:", "    x.fill_(1)", *_FILLED], "`x` is not a tensor of the instance"),
    ],
)
def test_a_branch_that_does_more_than_initialise_is_left_alone(lines: list[str], because: str) -> None:
    _declined(lines, because)
