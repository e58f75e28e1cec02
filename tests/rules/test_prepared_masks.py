"""Masks that become None where they mask nothing, and are prepared for a sum with scores where they mask anything."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario
from tests.tools.versions import WARNS_IN_NEWER_TRANSFORMERS

_MODEL = """
import torch
from torch import nn
from torch.nn import functional as F
from transformers.modeling_attn_mask_utils import _prepare_4d_attention_mask


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.proj = nn.Linear(4, 4)
        self.is_causal = False

    def forward(self, x, mask=None):
        q = self.proj(x).view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2)
        scores = q @ q.transpose(2, 3)
        if mask is not None:
            part = mask[:, :, :, : x.shape[1]]
            scores = scores + part
        scores = nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        other = F.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=self.is_causal)
        return (scores @ q + other).transpose(1, 2).reshape(x.shape)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = Attention(config)

    def forward(self, x, mask, again=False):
        return x + self.attention(x, mask=mask)


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([Layer(config) for _ in range(2)])

    def forward(self, inputs, mask=None):
        x = inputs
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Model(nn.Module):
    def __init__(self, config="eager"):
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.flash = config == "flash"

    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        if not torch.any(~mask):
            kept = None
        else:
            kept = _prepare_4d_attention_mask(mask, x.dtype) if not self.flash else mask
        return self.encoder(inputs=x, mask=kept), mask.sum()
"""
_CALLS = [
    "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)",
    "torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, True, True]])",
    "torch.randn(2, 3, 4), torch.tensor([[False, False, False], [True, False, True]])",
    "torch.full((2, 3, 4), float('nan')), torch.ones(2, 3, dtype=torch.bool)",
    "torch.randn(0, 3, 4), torch.ones(0, 3, dtype=torch.bool)",
]
_TRAINED = (Scenario(), Scenario(training=True, gradients="inner"))


@WARNS_IN_NEWER_TRANSFORMERS
def test_a_mask_that_is_added_to_scores_stays_prepared() -> None:
    after, _ = fixed(_MODEL)
    assert "and not self.flash\n" in after
    behaves(_MODEL, after, _CALLS, scenarios=_TRAINED)
    compiles(after, _CALLS, scenarios=_TRAINED)
    assert not [finding for finding in checked(after).findings if finding.code == "GM109"]


_SAME = [
    ("if not torch.any(~mask):", "if mask.all():"),
    ("if not torch.any(~mask):", "if torch.all(mask == 1):"),
    (
        "not torch.any(~mask):\n            kept = None\n        else:\n            kept =",
        "torch.any(~mask):\n            kept =",
    ),
    (
        "        if not torch.any(~mask):\n            kept = None\n        else:\n            kept =",
        "        kept = None\n        if torch.any(~mask):\n            kept =",
    ),
    (
        "kept = _prepare_4d_attention_mask(mask, x.dtype) if not self.flash else mask",
        "if self.flash:\n                kept = mask\n            else:\n"
        "                kept = _prepare_4d_attention_mask(mask, x.dtype)",
    ),
    ("for layer in self.layers:", "for at, layer in enumerate(self.layers[:2]):"),
    ("scores = scores + part", "scores += part"),
    (
        "scores = nn.functional.softmax(scores, dim=-1, dtype=torch.float32)",
        "scores = scores.softmax(-1, dtype=torch.float32)",
    ),
]


@WARNS_IN_NEWER_TRANSFORMERS
@pytest.mark.parametrize(("old", "new"), _SAME)
def test_other_words_for_the_same_are_understood(old: str, new: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    if new.endswith("torch.any(~mask):\n            kept =") and "kept = None" not in new:
        source = source.replace("else mask\n", "else mask\n        else:\n            kept = None\n")
    after, _ = fixed(source)
    assert "# Prepared" in after
    behaves(source, after, _CALLS, scenarios=(Scenario(),))
    compiles(after, _CALLS, scenarios=[Scenario(gradients="off")])


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("scores = scores + part", "scores = scores * part", "does more than add"),
        ("scores = scores + part", "scores = scores + part\n            x = x + 1", "does more than add"),
        ("scores = scores + part", "scores = scores + part.cumsum(-1)", "does more than add"),
        ("part = mask[:, :, :, : x.shape[1]]", "part = mask[:, :, :, : x.shape[1]] + 1", "does more than add"),
        ("(scores @ q", "(part @ q", "does more than add"),
        ("dim=-1, dtype=torch.float32)", "dim=-1)", "may change the dtype of `scores`"),
        (
            "        scores = nn",
            "        x = x + scores.sum()\n        scores = nn",
            "may change the dtype of `scores`",
        ),
        ("if mask is not None:", "if mask is not None or x.dim() > 9:", "does more than add"),
        ("if mask is not None:", "if mask is not None and mask.any():", "does more than add"),
        ("is_causal=self.is_causal", "is_causal=mask is None", "may treat a mask of ones differently from None"),
        ("self.is_causal = False", "self.is_causal = True", "may attend to later positions"),
        ("is_causal=self.is_causal", "is_causal=x.shape[1] > 2", "may attend to later positions"),
        ("attn_mask=mask", "attn_mask=mask * 2", "may treat a mask of ones differently from None"),
        (
            "x = layer(x, mask)",
            "x = layer(x, mask, again=mask is None)",
            "may treat a mask of ones differently from None",
        ),
        ("x = layer(x, mask)", "layer = layer.inner\n            x = layer(x, mask)", "cannot infer what `layer`"),
        (
            "Layer(config) for _ in range(2)",
            "make(config) for _ in range(2)",
            "`make.forward` is defined in another file",
        ),
        ("inputs=x, mask=kept", "inputs=x + 1, mask=kept", "cannot infer the size"),
        ("_prepare_4d_attention_mask(mask, x.dtype) if", "mask.to(x.dtype) if", "changes its form"),
        ("_prepare_4d_attention_mask(mask, x.dtype) if", "prepare(mask, x.dtype) if", "changes its form"),
        ("_mask(mask, x.dtype) if", "_mask(~mask, x.dtype) if", "changes its form"),
        ("_mask(mask, x.dtype) if", "_mask(mask, x.dtype, 3) if", "changes its form"),
        ("if not self.flash else mask", "if x.sum() > 0 else mask", "may not be constant while tracing"),
        ("if not self.flash else mask", "if not self.flash else ~mask", "different forms"),
        ("mask.sum()\n", "kept is None\n", "may treat a mask of ones differently from None"),
        (
            "attn_mask=mask",
            "attn_mask=mask, dropout_p=self.drop(mask)",
            "may treat a mask of ones differently from None",
        ),
    ],
)
def test_any_other_use_keeps_the_test(old: str, new: str, because: str) -> None:
    assert old in _MODEL
    declined(_MODEL.replace(old, new), because=because)


def test_a_mask_of_another_size_keeps_the_test() -> None:
    after, _ = fixed(_MODEL)
    others = [
        "torch.randn(2, 3, 4), torch.ones(2, 1, dtype=torch.bool)",
        "torch.randn(2, 3, 4), torch.ones(3, dtype=torch.bool)",
    ]
    behaves(_MODEL, after, others, scenarios=(Scenario(),))
    compiles(after, others, strict=False)


def test_layers_of_several_classes_are_all_looked_at() -> None:
    other = "class Other(nn.Module):\n    def forward(self, x, mask):\n        return x if mask is None else -x\n\n\n"
    source = _MODEL.replace("class Encoder", f"{other}class Encoder")
    declined(
        source.replace("[Layer(config) for _ in range(2)]", "[Layer(config), Other(config)]"),
        because="in `Other.forward` may treat",
    )
    later = source.replace("range(2)])", "range(2)])\n        self.layers.append(Other(config))")
    declined(later, because="cannot infer what `nn.ModuleList")
