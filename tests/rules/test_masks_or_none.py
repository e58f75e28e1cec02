"""Masks that become None where they mask nothing, and what is done with them several calls below."""

from __future__ import annotations

import pytest

from tests.rules.mask_calls import CALLS
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


def drop_padding(x, mask):
    if mask is not None and mask.shape[1] > 1 and mask.shape[0] > 1:
        dtype = x.dtype
        x = (x * mask[:, :, None]).to(dtype)
    return x


class Scan(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.Linear(4, 8)
        self.conv = nn.Conv1d(4, 4, 2, padding=1)
        self.steps = nn.Linear(4, 4)
        self.out = nn.Linear(4, 4)
        self.act = torch.nn.functional.silu

    def slow(self, x, mask=None):
        x, gate = self.into(x).transpose(1, 2).chunk(2, dim=1)
        if mask is not None:
            x = x * mask.unsqueeze(1)
        state = torch.roll(x, 1, dims=-1)
        state[:, :, 0] = 0
        x = self.act(self.conv(x)[..., : x.shape[-1]])
        x += 1
        if mask is not None:
            x = x * mask.unsqueeze(1)
        steps = self.steps(x.transpose(1, 2)).transpose(1, 2)
        return self.out((x * gate + state * steps).transpose(1, 2))

    def forward(self, x, mask=None):
        x = drop_padding(x, mask)
        return self.slow(x, mask)


class Layer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        if kind == "scan":
            self.scan = Scan()

    def forward(self, x, mask=None):
        if self.kind == "scan":
            y = self.scan(x, mask=mask)
        elif self.kind == "attention":
            y = torch.softmax(x + mask, -1)
        return x + y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for kind in ("scan", "attention", "scan"):
            layers.append(Layer(kind))
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, mask=None, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[1], device=x.device)
        kept = self._update_mask(mask, positions)
        y = x * 1
        for layer in self.layers:
            layer_mask = kept if layer.kind == "scan" else x[:, :1]
            x = layer(x, mask=layer_mask)
        return x + y

    def _update_mask(self, mask, positions):
        kept = mask
        if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
            kept = None
        return kept
"""


def test_a_mask_that_is_only_multiplied_by_stays() -> None:
    after, _ = fixed(_MODEL)
    assert "masked_fill(positions[0] > 0, 1)" in after
    assert 'type(getattr(layer, "scan", None)) in (Scan, type(None))' in after
    behaves(_MODEL, after, CALLS, scenarios=(Scenario(), Scenario(training=True, gradients="inner")))
    compiles(after, CALLS)


def test_fixing_again_finds_nothing() -> None:
    after, _ = fixed(_MODEL)
    assert fixed(after)[0] == after
    assert not [finding for finding in checked(after).findings if finding.code == "GM109"]


_OTHERS = [
    "torch.randn(2, 2, 4), torch.ones(2, 5, dtype=torch.long), torch.tensor([3, 4])",
    "torch.randn(2, 2, 4), torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]]), torch.tensor([2, 3])",
    "torch.randn(2, 3, 4), torch.ones(2, 3)",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]], dtype=torch.float64)",
]


def test_a_mask_of_another_length_or_dtype_keeps_the_test() -> None:
    after, _ = fixed(_MODEL)
    behaves(_MODEL, after, _OTHERS, scenarios=(Scenario(),))
    compiles(after, _OTHERS, strict=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("x = x * mask.unsqueeze(1)", "x = x + mask.unsqueeze(1)", "does more than multiply"),
        ("x = x * mask.unsqueeze(1)", "x = x * mask.cumsum(1)[:, None]", "does more than multiply"),
        ("mask.shape[1] > 1 and", "mask.sum() > 1 and", "does more than multiply"),
        (
            "x = x * mask.unsqueeze(1)\n        state",
            "x = x * mask.unsqueeze(1)\n        x += 1\n        state",
            "may write",
        ),
        (
            "state = torch.roll(x, 1, dims=-1)",
            "state = x.view(x.shape)",
            ("may write in place to the tensor or a view of it"),
        ),
        ("state[:, :, 0] = 0", "x.narrow(0, 0, 1).add_(1)", "may write in place to the tensor or a view of it"),
        ("state[:, :, 0] = 0", "x.transpose(0, 1)[0] = 0", "may write in place to the tensor or a view of it"),
        ("state[:, :, 0] = 0", "torch.relu(state, out=x)", "may write in place to the tensor or a view of it"),
        (
            "state[:, :, 0] = 0",
            "nn.functional.relu(x, inplace=True)",
            ("may write in place to the tensor or a view of it"),
        ),
        ("x = (x * mask[:, :, None]).to(dtype)", "x = x * mask[:, :, None]", "does more than multiply"),
        (
            "self.slow(x, mask)",
            "self.slow(x, mask if self.training else None)",
            "may treat a mask of ones differently from None",
        ),
        ('if self.kind == "scan":\n            y', "if x.dim() > 1:\n            y", "does more than multiply"),
        (
            "torch.arange(x.shape[1], device=x.device)",
            "torch.arange(x.shape[0])",
            "cannot infer the length of `positions`",
        ),
        (
            "if positions is None:\n            positions = torch.arange(x.shape[1], device=x.device)\n        kept",
            "kept",
            "cannot infer the length",
        ),
        ("return kept", "return kept, mask", "may treat a mask of ones differently from None"),
        ("kept = mask\n", "kept = mask.bool()\n", "may differ from"),
        ("layers.append(Layer(kind))", "layers.append(make(kind))", "`make.forward` is defined in another file"),
        ("_update_mask", "update_mask", "may be called from elsewhere"),
    ],
)
def test_any_other_use_keeps_the_test(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    if "if x.dim() > 1" in new:
        source = source.replace('layer.kind == "scan" else', "layer.kind != 'attention' else")
        because = "may treat a mask of ones differently from None"
    declined(source, because=because)


def test_a_result_that_is_asked_for_in_another_way_keeps_the_test() -> None:
    other = "\n\nclass Other(Model):\n    def forward(self, x, mask):\n        return self.model._update_mask(mask, x)"
    declined(_MODEL + other, because="`self.model._update_mask` may lead to `Model._update_mask` from elsewhere")


def test_a_layer_that_works_in_place_keeps_the_test() -> None:
    source = _MODEL.replace(
        "self.steps = ", "self.drop = nn.Sequential(nn.Dropout(inplace=True))\n        self.steps = "
    )
    declined(
        source.replace("state[:, :, 0] = 0", "self.drop(x)"),
        because=("may write in place to the tensor or a view of it"),
    )


def test_the_other_half_of_a_tensor_may_be_written() -> None:
    assert "masked_fill" in fixed(_MODEL.replace("state[:, :, 0] = 0", "gate.add_(1)"))[0]


def test_memory_of_another_result_may_be_written() -> None:
    assert "masked_fill" in fixed(_MODEL.replace("x += 1", "x.view(-1).add_(1)"))[0]


_KERNEL = _MODEL.replace(
    "def drop_padding", "try:\n    from fast import scan\nexcept ImportError:\n    scan = None\n\n\ndef drop_padding"
).replace("        state[:, :, 0] = 0\n", "        state[:, :, 0] = 0\n        scan is not None and scan(x)\n")


def test_a_kernel_that_only_some_installations_have_is_asked_about() -> None:
    after, _ = fixed(_KERNEL)
    assert "and scan is None" in after
    compiles(after, CALLS)
    declined(_KERNEL.replace("    scan = None", "    scan = print"), because="`scan(x)` in `Scan.slow` may write")
    own = _KERNEL.replace("(self, mask, positions)", "(self, mask, positions, scan=None)")
    declined(own, because="the name `scan` means something else in `Model._update_mask`")


def test_memory_that_every_branch_replaces_may_be_written() -> None:
    replaced = "if self.training:\n            x = x * 2\n        else:\n            x = x + 1\n        self.act(x)"
    assert "masked_fill" in fixed(_MODEL.replace("state[:, :, 0] = 0", replaced))[0]
    for kept in (replaced.replace("x * 2", "x[:1]"), replaced.replace("else:", "elif mask is None:")):
        declined(_MODEL.replace("state[:, :, 0] = 0", kept.replace("self.act(x)", "x += 1")), because="may write")


def test_a_subclass_with_another_layer_is_told_apart() -> None:
    other = """

class Other(Layer):
    def __init__(self, kind):
        super().__init__(kind)
        self.scan = make()


def make():
    return lambda x, mask=None: x if mask is None else -x
"""
    source = _MODEL.replace("layers.append(Layer(kind))", "layers.append((Layer, Other)[kind == 'scan'](kind))") + other
    declined(source, because="cannot infer what")
    after, _ = fixed(_MODEL + other)
    assert "type(layer) is Layer" in after
    assert 'or layer.kind != "scan"' in after
    changed = "\n\nclass Changed(Model):\n    def __init__(self):\n        super().__init__()\n"
    put = "        self.layers[0] = Other('attention')\n        self.layers[0].kind = 'scan'\n"
    compiles(after + changed + put, CALLS, name="Changed", strict=False)


def test_a_layer_that_is_exchanged_keeps_the_test() -> None:
    source = _MODEL.replace(
        "            x = layer(x, mask", "            layer = layer.inner\n            x = layer(x, mask"
    )
    declined(source, because="cannot infer what `layer`")


def test_a_subclass_that_replaces_a_method_keeps_the_test() -> None:
    other = "\n\nclass Other(Scan):\n    def slow(self, x, mask=None):\n        return x if mask is None else -x\n"
    declined(_MODEL + other, because="another class replaces `Scan.slow`")


@pytest.mark.parametrize("test", ["torch.all(mask == 0)", "torch.any(mask == 1)", "torch.all(mask != 1)"])
def test_another_question_is_not_the_one_for_ones(test: str) -> None:
    source = _MODEL.replace("torch.all(mask == 1)", test)
    assert "GM109" not in {finding.code for finding in checked(source).findings}


def test_a_mask_that_becomes_a_bias_otherwise_is_declined() -> None:
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        if not torch.any(~mask):
            mask = None
        elif x.dim() > 2:
            mask = torch.where(mask, 0.0, -1.0)
        return x if mask is None else x + mask
"""
    declined(source, because="the branch that keeps the mask changes its form: `mask = torch.where(mask, 0.0, -1.0)`")


_BY_CALLER = (
    _MODEL.replace("class Layer", "class Cache:\n    def __init__(self, n):\n        self.n = n\n\n\nclass Layer")
    .replace("for kind in (", "self.kinds = kinds = (")
    .replace('"scan"):\n            layers', '"scan")\n        for kind in kinds:\n            layers')
    .replace("mask=None, positions=None):", "mask=None, cache=None):")
    .replace("        if positions is None:\n            positions = torch.arange(x.shape[1], device=x.device)\n", "")
    .replace("positions)", "cache)")
    .replace("if positions[0] > 0 or", "if (cache is not None and cache.n > 0) or")
    .replace("y = x * 1", "hidden = x")
    .replace("for layer in self.layers:", "for i, layer in enumerate(self.layers[: len(self.kinds)]):")
    .replace('kept if layer.kind == "scan"', 'kept if self.kinds[i] == "scan"')
    .replace(
        "x = layer(x, mask=layer_mask)\n        return x + y",
        "hidden = layer(hidden, mask=layer_mask)\n        return hidden",
    )
)
_WITH_CACHE = [
    *CALLS[:3],
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), Cache(0)",
    "torch.randn(2, 1, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), Cache(2)",
    "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), Cache(2)",
]


def test_a_mask_stays_where_only_the_caller_knows_how_many_positions_there_are() -> None:
    after, _ = fixed(_BY_CALLER)
    assert "mask.shape == x.shape[:2]" in after
    assert "for layer, kind in zip(self.layers, self.kinds)" in after
    assert fixed(after)[0] == after
    behaves(_BY_CALLER, after, _WITH_CACHE, scenarios=(Scenario(training=True, gradients="inner"),))
    compiles(after, _WITH_CACHE)


def test_lists_that_disagree_with_their_layers_keep_the_test() -> None:
    source = _BY_CALLER.replace("self.kinds = kinds =", 'self.kinds = ("scan", "other", "scan")\n        kinds =')
    after, _ = fixed(source)
    assert "zip(self.layers, self.kinds)" in after
    calls = [_WITH_CACHE[1], "torch.randn(2, 2, 4), torch.ones(2, 5).long(), Cache(0)"]
    behaves(source, after, calls, scenarios=(Scenario(),))
    compiles(after, calls, strict=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("hidden = x\n", "hidden = x[:, :2]\n", "cannot infer the size of the tensor it multiplies"),
        ("for i, layer", "hidden = hidden[:, 1:]\n        for i, layer", "cannot infer the size"),
        (
            "(cache is not None and cache.n > 0) or (mask is not None and torch.all(mask == 1))",
            "(mask is not None and torch.all(mask == 1)) or cache.n > 0",
            "cannot infer the size",
        ),
        ("hidden = x\n", "x = x * 2\n        hidden = x\n", "cannot infer the size of the tensor it multiplies"),
        ("self._update_mask(mask, cache)", "self._update_mask(mask, Cache(0))", "`cache` of `Model._update_mask`"),
        ("        kept = mask\n", "        self.seen = mask\n        kept = mask\n", "cannot infer the size"),
        ("cache.n > 0", "Cache.n > 0", "cannot infer the size"),
        ("enumerate(self.layers[", "enumerate(self.layers[1:][", "cannot infer"),
        ("(self.layers[: len(self.kinds)])", "(self.layers, 1)", "may treat a mask of ones"),
        ("self.kinds[i] ==", "self.kinds[i - 1] ==", "may treat a mask of ones"),
    ],
)
def test_what_the_caller_does_not_know_keeps_the_test(old: str, new: str, because: str) -> None:
    assert old in _BY_CALLER
    declined(_BY_CALLER.replace(old, new), because=because)


_BY_CLASS = _BY_CALLER.replace(
    "class Model",
    """class Scans(nn.Module):
    def __init__(self):
        super().__init__()
        self.scan = Scan()

    def forward(self, x, mask=None):
        return x + self.scan(x, mask=mask)


class Attends(nn.Module):
    def forward(self, x, mask=None):
        return x + torch.softmax(x + mask, -1)


class Model""",
).replace(
    "nn.ModuleList(layers)", 'nn.ModuleList([Scans() if kinds[n] == "scan" else Attends() for n in range(len(kinds))])'
)


def test_a_list_of_kinds_may_choose_the_classes_of_layers() -> None:
    after, _ = fixed(_BY_CLASS)
    assert "type(layer) is Scans" in after
    compiles(after, _WITH_CACHE[-2:])
    source = _BY_CLASS.replace("self.kinds = kinds =", 'self.kinds = ("scan", "other", "scan")\n        kinds =')
    compiles(fixed(source)[0], _WITH_CACHE[1:2], strict=False)
    declined(_BY_CLASS.replace('== "scan" else Attends', '!= "scan" else Attends'), because="may treat a mask of ones")
