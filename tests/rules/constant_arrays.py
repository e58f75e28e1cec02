"""A module with functions that compute arrays from numbers, for the tests of GM603."""

from __future__ import annotations

HEAD = """
import numpy as np
import torch
from torch import nn


def reflect(x, low, high):
    x = np.asanyarray(x)
    span = high - low
    turned = np.fmod(x - low, 2 * span)
    turned = np.where(turned < 0, turned + 2 * span, turned)
    return np.array(np.where(turned >= span, 2 * span - turned, turned) + low, dtype=x.dtype)


def symmetric(size, border):
    places = reflect(np.arange(-border, size + border, dtype="int32"), -0.5, size - 0.5)
    return places

"""
MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 4
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor):
        BODY
"""


def module_with(body: str, head: str = HEAD) -> str:
    """The model with statements for its `forward`, below other functions."""
    return head + MODEL.replace("BODY", body.strip().replace("\n", "\n        "))
