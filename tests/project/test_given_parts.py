"""Parts that a constructor makes where it is given none, and packages whose name other projects import."""

from __future__ import annotations

from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api

_MODEL = """
import torch
from torch import nn
from torchvision.ops import boxes as box_ops


class _Head(nn.Module):
    def _loss(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].exp()


class Model(nn.Module):
    def __init__(self, head: nn.Module | None = None) -> None:
        super().__init__()
        if head is None:
            head = _Head()
        self.head = head

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head._loss(box_ops._remove_small(x))
"""
_BOXES = """
import torch


def _remove_small(boxes: torch.Tensor) -> torch.Tensor:
    return boxes[torch.where(boxes > 1)[0]]
"""


def test_both_are_reached(tmp_path: Path) -> None:
    (tmp_path / "torchvision" / "ops").mkdir(parents=True)
    for name, text in {"__init__.py": "", "ops/__init__.py": "", "ops/boxes.py": _BOXES, "model.py": _MODEL}.items():
        (tmp_path / "torchvision" / name).write_text(text)
    found = api.check([tmp_path], Settings(tmp_path), cache=False).findings
    assert {each.function for each in found} == {"_Head._loss", "_remove_small"}
