"""Masks that become None and are chosen by the kind of a layer, and a dtype that a branch of the layer assigns."""

from __future__ import annotations

import pytest

from tests.rules.mask_calls import CALLS
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Cache:
    def __init__(self, n):
        self.n = n


class Scan(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.into = nn.Linear(4, 8)
        self.conv = nn.Conv1d(4, 4, 2, padding=1)
        self.out = nn.Linear(4, 4)
        self.act = torch.nn.functional.silu

    def forward(self, x, mask=None):
        dtype = x.dtype
        if x.shape[-1] != 4:
            y = self.into(x)
        else:
            if mask is not None:
                x = (x * mask[:, :, None]).to(dtype)
            y = self.into(x)
        y, gate = y.chunk(2, dim=-1)
        y = self.act(self.conv(y.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        if mask is not None:
            dtype = y.dtype
            # padding counts for nothing
            y = (y * mask[:, :, None]).to(dtype)
        y = y.float() * torch.sigmoid(gate)
        return self.out(y.to(dtype))


class Mix(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.into = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        return torch.softmax(self.into(x) + mask, -1)


class Plain(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.into = nn.Linear(4, 4)

    def forward(self, x):
        return self.into(x)


KINDS = {"scan": Scan, "mix": Mix, "plain": Plain}


class Layer(nn.Module):
    def __init__(self, kinds, number):
        super().__init__()
        self.kind = kinds[number]
        self.part = KINDS[self.kind](number)

    def forward(self, x, mask=None):
        if self.kind == "scan":
            y = self.part(x, mask=mask)
        elif self.kind == "mix":
            y = self.part(x, mask)
        else:
            y = self.part(x)
        return x + y


class Model(nn.Module):
    def __init__(self, kinds=("scan", "mix", "plain", "scan")):
        super().__init__()
        self.layers = nn.ModuleList([Layer(kinds, number) for number in range(len(kinds))])

    def forward(self, x: torch.Tensor, mask=None, cache=None):
        kept = self._update_mask(mask, cache)
        masks = {"scan": kept, "mix": x[:, :1], "plain": None}
        hidden = x
        for layer in self.layers:
            layer_mask = masks[layer.kind]
            hidden = layer(hidden, mask=layer_mask)
        return hidden

    def _update_mask(self, mask, cache):
        kept = mask
        if (cache is not None and cache.n > 0) or (mask is not None and torch.all(mask == 1)):
            kept = None
        return kept
"""
_LOOKED_UP = """        masks = {"scan": kept, "mix": x[:, :1], "plain": None}
"""
_CHOSEN = """            layer_mask = masks[layer.kind]
"""
_CHAIN = """            if layer.kind == "mix":
                layer_mask = x[:, :1]
            elif layer.kind == "scan":
                layer_mask = kept
            else:
                layer_mask = None
"""
_BY_TESTS = _MODEL.replace(_LOOKED_UP, "").replace(_CHOSEN, _CHAIN)
_BY_BRANCH = _MODEL.replace(
    "        self.part = KINDS[self.kind](number)\n",
    """        if self.kind == "scan":
            self.part = Scan(number)
        else:
            made = Mix if self.kind == "mix" else Plain
            self.part = made(number)
""",
)
_WITH_CACHE = [
    *CALLS[:4],
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), Cache(0)",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), Cache(2)",
    "torch.full((2, 3, 4), float('nan')), torch.ones(2, 3, dtype=torch.long)",
]


@pytest.mark.parametrize("source", [_MODEL, _BY_TESTS, _BY_BRANCH], ids=["looked up", "by tests", "by branch"])
def test_a_mask_for_one_kind_of_layers_stays(source: str) -> None:
    after, _ = fixed(source)
    part = 'getattr(layer, "part", None)' if source == _BY_BRANCH else "layer.part"
    assert 'layer.kind != "scan"' in after
    assert f'type(getattr({part}, "out", None)) in (nn.Linear, type(None))' in after
    assert fixed(after)[0] == after
    scenarios = (Scenario(), Scenario(training=True, gradients="inner"))
    behaves(source, after, _WITH_CACHE, scenarios=scenarios)
    compiles(after, _WITH_CACHE, scenarios=scenarios)


@pytest.mark.parametrize(
    "exchanged",
    [
        "        self.layers[0].part = Strange(0)\n",
        "        self.layers[0].part.out = Wide()\n",
        '        self.layers[1].kind = "scan"\n        self.layers[1].part.forward = lambda x, mask: x\n',
    ],
    ids=["another class", "another layer", "another kind"],
)
def test_layers_of_other_classes_keep_the_test(exchanged: str) -> None:
    other = """

class Strange(Scan):
    def forward(self, x, mask=None):
        return x if mask is None else x + 1


class Wide(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)

    def forward(self, x):
        return super().forward(x.float()).to(x.dtype)


class Changed(Model):
    def __init__(self):
        super().__init__()
"""
    source = _MODEL + other + exchanged
    after, _ = fixed(source)
    behaves(source, after, _WITH_CACHE, name="Changed", scenarios=(Scenario(),))
    compiles(after, _WITH_CACHE, name="Changed", strict=False)


def test_under_autocast_the_results_are_those_of_eager_mode() -> None:
    source = _MODEL.replace("hidden = x\n", "hidden = x\n        torch.set_autocast_enabled('cpu', True)\n").replace(
        "        return hidden\n", "        torch.set_autocast_enabled('cpu', False)\n        return hidden.float()\n"
    )
    after, _ = fixed(source)
    assert "type(layer.part) is Scan" in after
    behaves(source, after, _WITH_CACHE, scenarios=(Scenario(),))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        hidden = x\n", '        masks["plain"] = kept\n        hidden = x\n'),
        ("        hidden = x\n", "        masks.update(plain=1)\n        hidden = x\n"),
        ('"plain": None}', '"plain": kept}'),
        ('"plain": None}', '"plain": kept.bool()}'),
        ('"plain": None}', '**{"plain": None}}'),
        ('"plain": None}', "1: None}"),
        ("masks[layer.kind]", "masks.get(layer.kind)"),
        ("masks[layer.kind]", "masks[layer.kind].bool()"),
        ("            layer_mask = masks", '            layer_mask = masks["plain"]\n            layer_mask = masks'),
        ("return hidden\n", "return hidden, masks\n"),
        ("return hidden\n", "return [masks[each] for each in masks]\n"),
        ("return hidden\n", 'return hidden if masks["scan"] is None else -hidden\n'),
    ],
)
def test_a_table_that_may_hold_something_else_keeps_the_test(old: str, new: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because="may treat a mask of ones differently from None")


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("            else:\n                layer_mask = None\n", "", "may treat a mask"),
        ("layer_mask = None\n", "pass\n", "may treat a mask"),
        ("layer_mask = None\n", "layer_mask = kept.bool()\n", "may treat a mask"),
        ("layer_mask = kept\n", "layer_mask = kept\n                seen = layer_mask\n", "may treat a mask"),
        ('elif layer.kind == "scan":', "elif kept is not None:", "does more than multiply"),
        ('elif layer.kind == "scan":', "elif layer.kind:", "does with the mask"),
        ("hidden = layer(", "layer_mask = layer_mask\n            hidden = layer(", "may treat a mask"),
        ("hidden = x\n", "hidden = x\n        layer_mask = None\n", "may treat a mask"),
    ],
)
def test_tests_that_leave_something_open_keep_the_test(old: str, new: str, because: str) -> None:
    assert old in _BY_TESTS
    declined(_BY_TESTS.replace(old, new), because=because)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.out(y.to(dtype))", "self.out(y).to(dtype)"),
        ("self.out(y.to(dtype))", "self.act(y.to(dtype))"),
        ("self.out(y.to(dtype))", "self.out(y.to(dtype, copy=True))"),
        ("self.out(y.to(dtype))", "(lambda: self.out(y.to(dtype)))()"),
        ("        y = y.float()", "        half = dtype == torch.float16\n        y = y.float()"),
        ("self.out = nn.Linear(4, 4)", "self.out = nn.LayerNorm(4)"),
        ("self.out = nn.Linear(4, 4)", "self.out = nn.Linear(4, 4) if number else nn.Identity()"),
        ("        dtype = x.dtype\n        if x", "        if x"),
    ],
)
def test_a_dtype_that_is_read_otherwise_keeps_the_test(old: str, new: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    if "if x.shape" in old or "dtype = x.dtype" in old:
        source = source.replace("(x * mask[:, :, None]).to(dtype)", "x * mask[:, :, None]")
    declined(source, because="may change the dtype of `y`")
