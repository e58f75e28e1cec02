"""What stands around the statements of a random program: imports, functions, the constructor, and inputs."""

from __future__ import annotations

HEAD = """import logging
import warnings

import numpy as np
import torch
from torch import nn
from torch.autograd import Variable
from tqdm import tqdm

logger = logging.getLogger(__name__)


def check(ok, message):
    if not ok:
        raise ValueError(message)


def require(u):
    if (u > 1e6).any():
        raise ValueError("too large")


def squash(u, most):
    return u / (u.abs() + most)


"""

PART = """class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.register_buffer("s", torch.ones(3))
        self.w = nn.Parameter(torch.ones(3))
        self.linear = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.register_buffer("seen", torch.tensor(0))
        self.limit, self.on, self.kept = 2, True, {}

    def forward(self, u{tensor}):
"""

MODEL = """class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, u, kept=None):
        u = self.proj(u)
        if kept is not None:
            u = u * kept[:, None]
        return torch.cumsum(u, dim=0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.lstm = nn.LSTM(3, 3, batch_first=True)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))
        self.w = nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))
        self.register_buffer("s", torch.tensor([1.0, 0.5, 0.25]))
        self.register_buffer("seen", torch.tensor(0))
        self.part, self.attend = Part(), Attend()
        self.count, self.limit, self.drop, self.on = 0, 2, 0.0, True
        self.last, self.kept, self.widest, self.table = None, {}, 0, None
        self.longest = 3.0

    def stretched(self, length):
        return torch.ones(3) * length

"""

FLOATS = (
    "torch.randn({n}, 3)",
    "torch.randn({n}, 3)",
    "torch.randn({n}, 3) + 2.0",
    "torch.randn({n}, 3) - 2.0",
    "torch.rand({n}, 3)",
    "torch.zeros({n}, 3)",
    "-torch.ones({n}, 3)",
    "torch.arange({n} * 3.0).view({n}, 3) - 2.0",
    "torch.randn({n}, 3) * 100.0",
)
ODD_FLOATS = (
    "torch.full(({n}, 3), nan)",
    "torch.full(({n}, 3), inf)",
    "torch.where(torch.arange(3) > 1, nan, torch.randn({n}, 3))",
    "torch.where(torch.arange(3) > 1, inf, torch.randn({n}, 3))",
    "torch.randn(3, {n}).t()",
)
MASKS = (
    "torch.arange({n}) % 2 == 0",
    "torch.ones({n}, dtype=torch.bool)",
    "torch.zeros({n}, dtype=torch.bool)",
    "torch.arange({n}) == 0",
)
LABELS = (
    "torch.arange({n}) % 3",
    "torch.zeros({n}, dtype=torch.long)",
    "torch.arange({n}) % 2",
    "2 - torch.arange({n}) % 3",
)
LENGTHS = (
    "torch.arange({n}) % 4",
    "torch.full(({n},), 2)",
    "torch.arange({n}) % 2 + 1",
    "torch.zeros({n}, dtype=torch.long)",
)
