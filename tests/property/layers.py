"""The text in front of `forward`: what a generated module imports, and the layers that it calls."""

from __future__ import annotations

from typing import NamedTuple

HEAD = """\
import logging
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)
history = []
BIG = float("inf")


{functions}{classes}class Base(nn.Module):
    def limited(self, t: torch.Tensor) -> torch.Tensor:
        if torch.isinf(t).any():
            t = torch.clamp(t, max=self.limit)
        return t


class Model(Base):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.bn = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.experts = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.gain = nn.Parameter(torch.ones(4))
        self.register_buffer("scale", torch.ones(4))
        self.register_buffer("table", torch.full((4,), 2.0), persistent=False)
        self.short_scale = self.scale
{made}        self.limit = 0.5
        self.count = 0
        self.last = None

    def build(self, factor):
        return torch.full((4,), factor, device=self.scale.device)
"""


class Part(NamedTuple):
    """What a body needs for one kind of call: a function, or a layer and the line that makes it."""

    function: str = ""
    layer: str = ""
    made: str = ""


_SQUASH = """\
def squash(t):
    # a helper that forward calls
    if t.abs().sum() > 8:
        t = t / 2
    return t


"""

_TELL = """\
told = set()


def tell(text):
    if text not in told:
        told.add(text)
        logger.info(text)


"""

_SEGMENTS = """\
def segments(ids: torch.LongTensor):
    rows, columns = ids.shape
    starts = torch.nonzero(ids == 1)
    segment = torch.zeros(rows, columns, dtype=torch.long, device=ids.device)
    for i in range(starts.shape[0]):
        row, column = starts[i]
        segment[row, column:] += 1
    return segment


"""

_PART = """\
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.long = nn.Linear(4, 4)

    def forward(self, t, rows):
        out = self.proj(t)
        if len(rows) > 0:
            part = torch.relu(self.long(t[rows]))
            out[rows] = part * 2
        return out


"""

_MARKS = """\
class Marks(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    @staticmethod
    def packed(mask):
        counts = mask.long().sum(dim=1)
        count = counts.max()
        chosen = mask.nonzero(as_tuple=True)
        taken = torch.arange(count, device=mask.device) < counts.unsqueeze(dim=-1)
        places = taken.nonzero(as_tuple=True)
        free = (taken == 0).nonzero(as_tuple=True)
        return count, chosen, places, free

    def forward(self, t, marks, marked=None):
        out = self.proj(t)
        if marked:
            count, chosen, places, free = self.packed(marks)
            rows = out.new_zeros(out.shape[0], count)
            rows[places] = out[chosen]
            rows[free] = torch.finfo(rows.dtype).min
            rows = torch.relu(rows) * 2
            out[chosen] = rows[places]
        assert out.size() == t.size(), "another size"
        return out


"""

_BORDER = """\
class Border(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 3, 2)
        step = torch.tensor(self.conv.stride[0], dtype=torch.int64)
        self.register_buffer("step", step, persistent=False)
        self.register_buffer("size", torch.tensor(self.conv.kernel_size[0]), persistent=False)

    def _missing(self, t):
        length = t.shape[-1]
        steps = (length - self.size) / self.step + 1
        steps = torch.ceil(steps).to(torch.int64) - 1
        return steps * self.step + self.size - length

    def forward(self, t):
        missing = self._missing(t)
        return F.pad(t, (self.size - self.step, missing))


"""

_GATED = """\
def gated(t, channels):
    return torch.cat([torch.tanh(t[:, :channels]), torch.sigmoid(t[:, channels:])], -1)


"""

_COUNTING = """\
class Counted(nn.Module):
    def forward(self, t, positions=None):
        if positions is not None and positions[0] > 0:
            t = t * 2
        return t + 1


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.counted = Counted()
        self.width = 4

    def forward(self, t, positions=None):
        if positions is None:
            positions = torch.arange(0, self.width, device=t.device)
        return self.counted(t, positions=positions)


"""

_CHOICE = """\
class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, t, marked=None):
        out = t * 2
        if marked:
            out = self.proj(out)
        assert out.size() == t.size()
        return out


"""

PARTS = {
    "squash(": Part(_SQUASH),
    "tell(": Part(_TELL),
    "segments(": Part(_SEGMENTS),
    "self.part(": Part(layer=_PART, made="        self.part = Part()\n"),
    "self.marks(": Part(layer=_MARKS, made="        self.marks = Marks()\n"),
    "self.choice(": Part(layer=_CHOICE, made="        self.choice = Choice()\n"),
    "gated(": Part(_GATED, made="        self.wide = 2\n"),
    "self.counting(": Part(layer=_COUNTING, made="        self.counting = Counting()\n"),
    "self.border(": Part(layer=_BORDER, made="        self.border = Border()\n"),
}
"""What is needed, by the text that calls it: what is never called would only cost time."""

ROWS = """\
class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(1, 3)
        self.wide = nn.Linear(3, 3)

    def forward(self, t, mask=None, places=None):
        t = {projected}
        if places is None:
            places = torch.arange(t.shape[1], device=t.device)
        kept = self._kept(mask, places)
        t = self._times(t, kept)
        return t.sum(-1)

    def _kept(self, mask, places):
        kept = mask
        if {test}:
            kept = None
        return kept

    def _times(self, t, mask=None):
        t = {again}
        if mask is not None:
            t = {product}
        return {result}


"""
"""A layer that multiplies by its mask unless it holds ones alone."""

ROWS_PIECES = {
    "projected": ("self.proj(t[..., None])", "self.proj(t[..., None])", "torch.stack([t, t, t * 2], -1)"),
    "test": (
        "places[0] > 0 or (mask is not None and torch.all(mask == 1))",
        "places[0] > 0 or (mask is not None and torch.all(mask == 1))",
        "(mask is not None and (mask == 1).all()) or places[0] > 0",
        "places[0] > 0 or (mask is not None and not torch.any(mask != 1))",
        "places[0] > 0 or (mask is not None and mask.all())",
        "places[0] != 0 or (mask is not None and not torch.any(~mask))",
        "mask is not None and torch.all(mask == 1)",
    ),
    "again": ("self.wide(t)", "self.wide(t)", "self.wide(t).transpose(0, 1).transpose(0, 1)", "t"),
    "product": (
        "t * mask[:, :, None]",
        "t * mask[:, :, None]",
        "t * mask[:, :, None]",
        "mask.unsqueeze(-1) * t",
        "(t * mask[..., None])",
        "t.flip(1)",
    ),
    "result": ("torch.cumsum(t, dim=1)", "torch.cumsum(t, dim=1)", "t", "t.relu_()"),
}

TABLES = (
    "        self.tables = nn.ParameterList([nn.Parameter(torch.randn(6, 1, 3)), nn.Parameter(torch.randn(1, 4, 2))])\n"
)
"""Parts of a table, of which rows are picked."""

SEEN = """\
def prepared(mask, dtype):
    rows, size = mask.size()
    wide = mask[:, None, None, :].expand(rows, 1, size, size).to(dtype)
    inverted = 1.0 - wide
    return inverted.masked_fill(inverted.to(torch.bool), {limit})


class Looking(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, t, mask=None):
        q = self.proj(t).view(t.shape[0], t.shape[1], 2, 2).transpose(1, 2)
        scores = q @ q.transpose(2, 3)
        if mask is not None:
            {added}
        scores = {weights}
        return (scores @ q).transpose(1, 2).reshape(t.shape)


class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.looking = Looking()

    def forward(self, t, seen: torch.BoolTensor):
        if {test}:
            kept = None
        else:
            kept = prepared(seen, t.dtype)
        return self.looking(t, mask=kept)


"""
"""Attention with a mask that is None where it masks nothing, and prepared for a sum with scores elsewhere."""

SEEN_PIECES = {
    "limit": ("torch.finfo(dtype).min", "torch.finfo(dtype).min", "-1e4"),
    "added": ("scores = scores + mask", "scores = scores + mask", "scores += mask", "scores = scores - mask"),
    "weights": (
        "F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)",
        "F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)",
        "scores.softmax(-1, dtype=torch.float32).to(q.dtype)",
        "F.softmax(scores, dim=-1)",
    ),
    "test": ("not torch.any(~seen)", "seen.all()", "torch.all(seen == 1)"),
}
