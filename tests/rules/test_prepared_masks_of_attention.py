"""Prepared masks where attention is chosen by the configuration."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed

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
