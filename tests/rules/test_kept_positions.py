"""Positions in a queue, read out of a buffer, written at and moved on."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

_QUEUE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.size = size
        self.register_buffer("queue", torch.zeros(4, size, dtype=torch.half))
        self.register_buffer("others", torch.zeros(size, 4))
        self.register_buffer("at", torch.full((1,), 4))

    @torch.no_grad()
    def push(self, keys, more=None):
        keys = torch.cat([keys])
        n = keys.shape[0]
        at = int(self.at)
        assert self.size % n == 0  # for simplicity
        self.queue[:, at : at + n] = keys.T

        if more is not None:
            more = torch.cat([more])
            self.others[at : n + at, :] = more
        at = (at + n) % self.size  # move on
        self.at[0] = at

    def forward(self, x, more=None):
        y = x @ self.queue.clone().float()
        self.push(x, more)
        self.push(2 * x)
        return y, self.queue.clone()
"""
_INPUTS = ["torch.randn(2, 4), torch.randn(2, 4)", "torch.randn(4, 4)"]


def test_the_position_stays_in_its_tensor() -> None:
    after, _ = fixed(_QUEUE, select=("GM401",))
    assert "self.queue[:, at + torch.arange(n, device=self.queue.device)] = keys.T.to(self.queue)" in after
    assert fixed(after, select=("GM401",))[0] == after
    behaves(_QUEUE, after, _INPUTS, scenarios=[Scenario()])
    compiles(after, _INPUTS, scenarios=[Scenario()])


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("self.queue[:, at : at + n] =", "self.queue[:, at : n] =", "has no known length"),
        ("self.queue[:, at : at + n] =", "self.queue[:, at : at + n] +=", "is used as a Python number"),
        ("        if more is not None:", "        if at > 0:", "stands between"),
        ("self.at[0] = at", "self.at[0] = at\n        return at", "stands between"),
        ("self.at[0] = at", "self.at[0] = at\n        self.last = at", "is used as a Python number"),
        ("at = (at + n)", "at = (at + self.step())", "cannot infer that `self.step()` is an integer"),
        ("] = keys.T", "] = self.turned(keys)", "cannot infer that `self.turned(keys)` is a Tensor"),
        ("] = more", "] = more[at]", "has no known length"),
        ("assert self.size % n == 0", "while self.size % n: n += 1", "stands between"),
        ("assert self.size % n == 0", "n = keys.shape[1]", "cannot infer what `n` is before"),
    ],
)
def test_a_position_that_is_used_for_more_is_read_as_before(old: str, new: str, because: str) -> None:
    source = _QUEUE.replace(old, new)
    assert source != _QUEUE
    reasons = [each.declined or "" for each in checked(source, select=("GM401",)).findings]
    assert len(reasons) == 1
    assert because in reasons[0] or "is bound in several places" in reasons[0], reasons


def test_a_queue_that_is_a_list_runs_the_original() -> None:
    after, _ = fixed(_QUEUE, select=("GM401",))
    assert "and isinstance(self.queue, torch.Tensor)" in after
    assert "and isinstance(n, int)" in after
