"""A module around the statements of a test, which read and write a buffer."""

from __future__ import annotations

MODEL = """
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


kept = []


def forget(given):
    kept.append(given)


def halve(given):
    given.mul_(0.5)


def halve_often(given, times):
    given.mul_(0.5)
    return halve_often(given, times - 1) if times else given


def last(given, times):
    return last(given, times - 1) if times else given.exp()


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.tensor([2.0, 3.0, 4.0]))

    def read(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.kept.exp()

    def last(self, given, times):
        return self.last(given, times - 1) if times else given.exp()

    def halve_often(self, times):
        self.kept.mul_(0.5)
        return self.halve_often(times - 1) if times else times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        {inner}
        return x


class Tree(nn.Module):
    def __init__(self, deep=2):
        super().__init__()
        self.register_buffer("kept", torch.tensor([2.0, 3.0, 4.0]))
        self.below = Tree(deep - 1) if deep else None

    def read(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.kept.exp()

    def halve(self):
        self.kept.mul_(0.5)
        return self.below.halve() if self.below is not None else None


class Model(nn.Module):
    def __init__(self, given=None):
        super().__init__()
        self.inner = Inner()
        self.tree = Tree()
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))
        self.listed = [self.scale]
        self.clip = nn.Hardtanh(-1.5, 1.5, True)
        self.counts = [0]
        self.given = given
        self.batch_norm = nn.Identity()

    def asked(self) -> float:
        return 2.0 if self.scale.sum() > 9.0 else 1.0

    def read(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale.exp()

    def halved(self) -> torch.Tensor:
        found = self.scale.exp().detach()
        self.scale.mul_(0.5)
        return found

    def remake(self, scale: torch.Tensor) -> None:
        self.scale = scale

    def update(self) -> None:
        self.scale.mul_(0.5)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        {body}
"""

SELECT = """if x.sum() > 0:
            x = x * 2.0"""
