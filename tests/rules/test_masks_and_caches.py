"""Masks that become None in layers whose caches keep what they computed."""

from __future__ import annotations

import pytest

from tests.rules.mask_calls import CALLS
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_LOOKED_FOR = """
import torch
from torch import nn

fast = None


class Cache:
    def __init__(self):
        self.held = None

    def update(self, x):
        self.held = x.clone()
        return self.held


class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        global fast
        fast = getattr(torch, "no_such_scan", None)
        self.into = nn.Linear(4, 8)
        self.out = nn.Linear(4, 4)

    def slow(self, given, cache, mask=None):
        x, gate = self.into(given).transpose(1, 2).chunk(2, dim=1)
        if mask is not None:
            x = x * mask.unsqueeze(1)
        before = cache.update(x)
        x = self.out((x + before).transpose(1, 2)).transpose(1, 2)
        if mask is not None:
            x = x * mask.unsqueeze(1)
        cache.update(x)
        return self.out((x * gate).transpose(1, 2))

    def quick(self, x, cache, mask=None):
        x = self.into(x)[..., :4]
        if mask is not None:
            x = x * mask[:, :, None]
        y, state = fast(x)
        cache.update(state)
        return self.out(y)

    def forward(self, x, cache, mask=None):
        if self.out.weight.device.type == "cuda":
            return self.quick(x, cache, mask)
        return self.slow(x, cache, mask)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scan = Scan()

    def forward(self, x: torch.Tensor, mask=None, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[1], device=x.device)
        if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
            mask = None
        return self.scan(x, Cache(), mask)
"""


def test_a_tensor_that_a_cache_keeps_below_its_product_is_its_own() -> None:
    after, _ = fixed(_LOOKED_FOR)
    assert "and fast is None" in after
    behaves(_LOOKED_FOR, after, CALLS[:5], scenarios=(Scenario(), Scenario(training=True, gradients="inner")))
    compiles(after, CALLS[:4])


_SECOND = "(x + before).transpose(1, 2)).transpose(1, 2)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("chunk(2, dim=1)\n", "chunk(2, dim=1)\n        cache.update(x)\n"),
        (_SECOND, f"{_SECOND}        cache.update(x)\n"),
        (_SECOND, f"{_SECOND}        cache.held = x.view(-1)\n"),
        (_SECOND, f"{_SECOND}        cache.update(x)\n        old = x\n        x = old.view(old.shape)\n"),
        (_SECOND, f"{_SECOND}        before = x[:1]\n        x = x.view(x.shape)\n"),
    ],
)
def test_a_tensor_that_something_else_has_may_be_written(old: str, new: str) -> None:
    source = _LOOKED_FOR.replace(old, new).replace("self.out((x * gate)", "self.out((x * gate * before.sum())")
    assert new in source
    declined(source, because="may write in place")
