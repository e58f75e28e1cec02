"""GM403 keeps a flag as a tensor only where what tests it can take a tensor: else the break would only move there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.fixes import declined, fixed, fixed_among

_GUARD = """
import torch
from torch import nn


class Part(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        masked = mask.any().item()
        if masked:
            raise ValueError("masked")
        return x
"""
_CALLER = """
from torch import nn

from model import Part


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x, mask):
        WAY
"""
_CATCHING = {
    "try": "try:\n            return self.part(x, mask)\n        except ValueError:\n            return x",
    "suppress": "import contextlib\n        with contextlib.suppress(ValueError):\n            x = self.part(x, mask)",
}


@pytest.mark.parametrize("way", _CATCHING)
def test_a_flag_whose_exception_another_file_catches_is_read_back(tmp_path: Path, way: str) -> None:
    after, reasons = fixed_among(tmp_path, _GUARD, {"caller.py": _CALLER.replace("WAY", _CATCHING[way])})
    assert after == _GUARD
    assert any("its exception may be caught" in reason for reason in reasons)


def test_a_flag_whose_exception_nobody_catches_stays_a_tensor(tmp_path: Path) -> None:
    after, _ = fixed_among(tmp_path, _GUARD, {"caller.py": _CALLER.replace("WAY", "return self.part(x, mask)")})
    assert after.count("is_compiling()") == 2
    assert "_assert_async(~masked" in after


@pytest.mark.parametrize(
    ("branch", "because"),
    [
        ("x = x.nonzero()", "`x.nonzero()` may have side effects"),
        ("x = self.part(x)", "would break the graph in its place"),
        ("x = x[:2]", "would break the graph in its place"),
    ],
)
def test_a_flag_between_branches_that_no_select_takes_is_read_back(branch: str, because: str) -> None:
    source = _GUARD.replace('raise ValueError("masked")', branch)
    declined(source, because)


def test_a_flag_that_is_tested_once_inside_try_is_read_back() -> None:
    test = (
        '        try:\n            if masked:\n                raise ValueError("masked")\n        except ValueError:\n'
    )
    source = _GUARD.replace(
        '        if masked:\n            raise ValueError("masked")\n', f"{test}            x = x + 1\n"
    )
    assert test in source
    declined(source, "inside `try`")


def test_one_test_that_cannot_take_a_tensor_is_enough() -> None:
    source = _GUARD.replace("return x\n", "if masked:\n            x = x[:2]\n        return x\n")
    after, _ = fixed(source)
    assert "masked = mask.any()\n" not in after
