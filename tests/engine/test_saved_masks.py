"""Masks that a gradient of a compile path needs, and what writes them in place below."""

from __future__ import annotations

import ast
import sys

import pytest

from graphmend_codemod.core.findings import Span
from graphmend_codemod.engine.written_below import written_below
from tests.tools.fixes import declined, fixed

_SINCE_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python parses `except*` since 3.11")
_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, lengths: torch.LongTensor):
        keep = lengths > 0
        total = x[keep].sum()
        {below}
        return total + x.sum(), keep
"""


@pytest.mark.parametrize(
    "write",
    [
        "keep.logical_not_()",
        "keep &= x[:, 0] > 1",
        "keep[0] = True",
        "torch.logical_not(keep, out=keep)",
        "torch.fill_(keep, True)",
        "F.hardtanh(keep, 0, 1, inplace=True)",
        "F.hardtanh(keep, 0, 1, True)",
        "if self.training:\n            keep = lengths > 1\n        keep[0] = True",
        "if self.training:\n            keep[0] = True",
        "other = keep\n        keep = lengths > 1\n        other[0] = True",
        "other = keep\n        other[0] = True\n        keep = lengths > 1",
        "other = lengths > 1\n        for _ in range(2):\n            other[0] = True\n            other = keep",
        "b = a = lengths > 1\n        for _ in range(3):\n            b[0] = 1\n"
        "            b = a\n            a = keep",
        "try:\n            keep = lengths > 1\n        except ValueError:\n            keep[0] = True",
        "self.kept = keep\n        keep = self.kept\n        keep[0] = True",
        "keep = keep if self.training else lengths > 0\n        keep[0] = True",
        "keep: torch.Tensor = keep.view(-1)\n        keep[0] = True",
        "keep = torch.narrow(keep, 0, 0, 2)\n        keep[0] = True",
        "keep = self.clone(keep)\n        keep[0] = True",
        "keep = own.clone(keep)\n        keep[0] = True",
        "keep = self.made(keep.clone(), keep).view(-1)\n        keep[0] = True",
        "keep = made(keep.clone()).view(-1)\n        keep[0] = True",
    ],
)
def test_a_mask_that_is_written_below_is_not_saved_for_a_gradient(write: str) -> None:
    declined(_MODEL.format(below=write), because="changes in place what a gradient of the compile path would need")


@pytest.mark.parametrize(
    "below",
    [
        "F.hardtanh(keep, 0, 1)",
        "torch.logical_not(keep, out=lengths)",
        "print_ = keep",
        "keep = lengths > 1\n        keep[0] = True",
        "keep = keep.clone()\n        keep[0] = True",
        "other = keep.new_zeros(keep.size()).bool()\n        other[0] = True",
    ],
)
def test_a_mask_that_is_only_read_below_may_be_saved(below: str) -> None:
    assert "torch.where(" in fixed(_MODEL.format(below=below))[0]


@pytest.mark.parametrize(
    ("after", "saved"),
    [
        ("keep[0] = True", True),
        ("keep = lengths > 1\n            keep[0] = True", False),
        ("pass\n        else:\n            keep[0] = True\n            total = x.sum()", False),
        ("pass\n        else:\n            total = x.sum()\n        keep[0] = True", True),
        ("pass\n        keep = lengths > 1\n        keep[0] = True", False),
    ],
)
def test_what_stands_below_in_the_branch_and_around_it_counts(after: str, saved: bool) -> None:
    start = "if self.training:\n            total = x[keep].sum()"
    source = _MODEL.replace("total = x[keep].sum()", start).format(below=f"    {after}")
    if saved:
        declined(source, because="changes in place what a gradient of the compile path would need")
    else:
        assert "torch.where(" in fixed(source)[0]


@pytest.mark.parametrize(
    ("body", "saved"),
    [
        ("try:\n            total = x[keep].sum()\n        finally:\n            keep[0] = True", True),
        ("while True:\n            keep[0] = True\n            total = x[keep].sum()", True),
        ("with torch.no_grad():\n            keep[0] = True\n        total = x[keep].sum()", False),
    ],
)
def test_what_runs_after_it_in_a_try_or_a_loop_counts(body: str, saved: bool) -> None:
    source = _MODEL.replace("total = x[keep].sum()", body).format(below="")
    if saved:
        declined(source, because="changes in place what a gradient of the compile path would need")
    else:
        assert "torch.where(" in fixed(source)[0]


@pytest.mark.parametrize("word", ["except", pytest.param("except*", marks=_SINCE_3_11)])
def test_a_handler_may_run_after_part_of_its_body(word: str) -> None:
    function = ast.parse(f"try:\n    y = x[m]\n    m = other\n{word} KeyError:\n    m[0] = 1")
    found = written_below(function, Span(2, 4, 2, 12), {"m"}, None)
    assert found is not None
    assert ast.unparse(found) == "m[0]"
    function = ast.parse("try:\n  if c:\n    y = x[m]\n    m = other\nexcept KeyError:\n  pass\nm[0] = 1")
    assert written_below(function, Span(3, 4, 3, 12), {"m"}, None) is not None


_LAYER = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        other = x.view(-1)
        spare = mask.clone()
        x, _ = self.lstm(x)
        {below}
        return x, other
"""


@pytest.mark.parametrize(
    ("below", "saved"),
    [
        ("x.masked_fill_(mask, 0)", False),
        (
            "padded = torch.zeros(8, 4)\n        padded[:3] = x\n        x = padded\n        x.masked_fill_(mask, 0)",
            False,
        ),
        ("x = spare\n        x.add_(1)", False),
        ("other.add_(1)", True),
        ("x = other\n        x.add_(1)", True),
    ],
)
def test_what_an_operator_returns_is_not_what_it_was_given(below: str, saved: bool) -> None:
    source = _LAYER.format(below=below)
    if saved:
        declined(source, because="changes in place what a gradient of the compile path would need")
    else:
        assert "_operator(" in fixed(source, opaque=True)[0]
