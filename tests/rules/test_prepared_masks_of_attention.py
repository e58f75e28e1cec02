"""Prepared masks where attention is chosen by the configuration."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.versions import WARNS_IN_NEWER_TRANSFORMERS

_CALLS = [
    "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)",
    "torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, True, True]])",
    "torch.randn(2, 3, 4), torch.tensor([[False, False, False], [True, False, True]])",
    "torch.full((2, 3, 4), float('nan')), torch.ones(2, 3, dtype=torch.bool)",
    "torch.randn(0, 3, 4), torch.ones(0, 3, dtype=torch.bool)",
]

_CHOSEN = """
from typing import Callable

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_attn_mask_utils import _prepare_4d_attention_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS


def eager(module, query, key, value, attention_mask, scaling, **kwargs):
    weights = torch.matmul(query, key.transpose(-1, -2)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = nn.functional.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.proj = nn.Linear(4, 4)
        self.is_causal = False

    def forward(self, x, mask=None):
        q = self.proj(x).view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2)
        attend: Callable = eager
        if self.config._attn_implementation != "eager":
            attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        y, _ = attend(self, q, q, q, mask, is_causal=self.is_causal, scaling=1.0)
        return y.reshape(x.shape)


class Model(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.attention = Attention(config)

    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        if not torch.any(~mask):
            mask = None
        elif not self.config._attn_implementation == "flash_attention_2":
            mask = _prepare_4d_attention_mask(mask, x.dtype)
        return self.attention(x, mask)
"""


def test_attention_functions_that_add_the_mask_are_known() -> None:
    after, _ = fixed(_CHOSEN)
    assert 'self.config._attn_implementation in ("eager", "sdpa")' in after


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        (" is_causal=self.is_causal,", "", "does not pass `is_causal=False`"),
        ("self.is_causal = False", "self.is_causal = config.is_causal", "does not pass `is_causal=False`"),
        ("weights = weights + attention_mask", "weights = weights * attention_mask", "does more than add"),
        ("attend: Callable = eager", "attend: Callable = other", "cannot infer what `attend`"),
        ("ALL_ATTENTION_FUNCTIONS[self", "OTHERS[self", "cannot infer what `attend`"),
        ("self.attention = Attention(config)", "self.attention = Attention(config.vision)", "may differ from"),
        ("        self.config = config\n", "        self.config = config.vision\n", "may differ from"),
        (
            "super().__init__(config)\n        self.att",
            "super().__init__(config.vision)\n        self.att",
            "cannot infer that",
        ),
        ("class Model(PreTrainedModel)", "class Model(nn.Module)", "keeps its configuration"),
    ],
)
def test_attention_that_may_tell_zeros_from_none_keeps_the_test(old: str, new: str, because: str) -> None:
    assert old in _CHOSEN
    declined(_CHOSEN.replace(old, new), because=because)


_CHOSEN_CLASSES = """
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_attn_mask_utils import _prepare_4d_attention_mask


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.proj = nn.Linear(4, 4)
        self.is_causal = False

    def forward(self, x, mask=None, weights=False):
        q = self.proj(x).view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2)
        scores = q @ q.transpose(2, 3)
        if mask is not None:
            scores = scores + mask
        scores = nn.functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return (scores @ q).transpose(1, 2).reshape(x.shape)


class SdpaAttention(Attention):
    def forward(self, x, mask=None, weights=False):
        if weights:
            return super().forward(x, mask, weights)
        q = self.proj(x).view(x.shape[0], x.shape[1], 2, 2).transpose(1, 2)
        if q.device.type == "cuda" and mask is not None:
            q = q.contiguous()
        is_causal = True if self.is_causal and q.shape[2] > 1 else False
        y = nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask, is_causal=is_causal)
        return y.transpose(1, 2).reshape(x.shape)


class FlashAttention(Attention):
    def forward(self, x, mask=None, weights=False):
        return flash(self.proj(x), mask)


CLASSES = {"eager": Attention, "sdpa": SdpaAttention, "flash_attention_2": FlashAttention}


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = CLASSES[config._attn_implementation](config)

    def forward(self, x, mask):
        return x + self.attention(x, mask=mask)


class Model(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([Layer(config) for _ in range(2)])
        self.flash = config._attn_implementation == "flash_attention_2"

    def forward(self, x: torch.Tensor, mask: torch.BoolTensor):
        if not torch.any(~mask):
            kept = None
        else:
            kept = _prepare_4d_attention_mask(mask, x.dtype) if not self.flash else mask
        for layer in self.layers:
            x = layer(x, kept)
        return x
"""
_BY_FLAG = _CHOSEN_CLASSES.replace(
    "self.attention = CLASSES[config._attn_implementation](config)",
    'self.flash = config._attn_implementation == "flash_attention_2"\n'
    "        self.attention = Attention(config) if not self.flash else FlashAttention(config)",
)


@WARNS_IN_NEWER_TRANSFORMERS
@pytest.mark.parametrize("source", [_CHOSEN_CLASSES, _BY_FLAG])
def test_a_choice_of_attention_by_the_configuration_is_followed(source: str) -> None:
    after, _ = fixed(source)
    assert "all(\n                type(layer) is Layer and type(layer.attention) " in after
    assert 'and self.config._attn_implementation in ("eager", "sdpa")' in after
    stub = """
class PreTrainedModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config


class Config:
    _attn_implementation = "{}"
"""
    for kind in ("eager", "sdpa"):
        alone = after.replace("from transformers import PreTrainedModel\n", "").replace(
            "\n\nclass Attention", stub.format(kind) + "\n\nclass Attention", 1
        )
        alone = alone.replace(
            "def __init__(self, config):\n        super().__init__(config)",
            "def __init__(self, config=Config()):\n        super().__init__(config)",
        )
        compiles(alone, _CALLS)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("Layer(config) for", "Layer(config.text) for", "the configuration of `Layer`"),
        ('"sdpa": SdpaAttention', '"sdpa": FlashAttention', "cannot infer what `flash`"),
        ('"sdpa": SdpaAttention', '"sdpa": make', "`make.forward` is defined in another file"),
        ("[config._attn_implementation]", "[config.kind]", "cannot infer what `self.attention`"),
        (
            "and mask is not None:\n            q = q.contiguous()",
            "and mask is not None:\n            q = -q",
            "does more than",
        ),
        ("True if self.is_causal and", "True if mask is None and", "may attend to later positions"),
        ("self.is_causal = False", "self.is_causal = True", "may attend to later positions"),
        (
            "class SdpaAttention(Attention)",
            "class SdpaAttention(Other, Attention)",
            "cannot infer what `super().forward`",
        ),
    ],
)
def test_another_choice_of_attention_keeps_the_test(old: str, new: str, because: str) -> None:
    assert old in _CHOSEN_CLASSES
    declined(_CHOSEN_CLASSES.replace(old, new), because=because)
