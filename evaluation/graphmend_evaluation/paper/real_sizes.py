"""The models of the published table at their real size: layers and widths of their public configurations.

`--full` runs them. A factory's name says which weights and how large a batch: `t5_small.random_one`,
`t5_small.pretrained_many`. See `hub` for where pretrained weights come from.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from graphmend_evaluation.paper.hub import FOLDER_VARIABLE

Inputs = dict[str, Any]

_TOKENS = 128


@dataclass(frozen=True)
class RealSize:
    """One model: its class and configuration by name, the configuration's settings, and inputs for a batch size.

    `many` is the large batch.
    """

    model: str
    cls: str
    config: str
    settings: Mapping[str, Any]
    inputs: Callable[[int, Any], Inputs]
    many: int = 32
    dtype: torch.dtype = torch.float32
    nested: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def random_one(self) -> tuple[nn.Module, Inputs]:
        """Random weights, batch 1."""
        return self._with_inputs(self._random(), 1)

    def random_many(self) -> tuple[nn.Module, Inputs]:
        """Random weights, the large batch."""
        return self._with_inputs(self._random(), self.many)

    def pretrained_one(self) -> tuple[nn.Module, Inputs]:
        """Pretrained weights, batch 1."""
        return self._with_inputs(self._pretrained(), 1)

    def pretrained_many(self) -> tuple[nn.Module, Inputs]:
        """Pretrained weights, the large batch."""
        return self._with_inputs(self._pretrained(), self.many)

    def _random(self) -> Any:
        parts = {name: getattr(transformers, cls)(**settings) for name, (cls, settings) in self.nested.items()}
        config = getattr(transformers, self.config)(**self.settings, **parts)
        return getattr(transformers, self.cls)(config).to(self.dtype)

    def _pretrained(self) -> Any:
        snapshot = Path(os.environ[FOLDER_VARIABLE]) / self.model
        return getattr(transformers, self.cls).from_pretrained(snapshot, torch_dtype=self.dtype)

    def _with_inputs(self, model: Any, batch: int) -> tuple[nn.Module, Inputs]:
        return model.eval(), self.inputs(batch, model)


def _ids(batch: int, length: int) -> torch.Tensor:
    return torch.randint(1200, 8000, (batch, length))


def _texts(length: int = _TOKENS) -> Callable[[int, Any], Inputs]:
    return lambda batch, _: {"input_ids": _ids(batch, length)}


def _text_to_text(batch: int, _: Any) -> Inputs:
    return {"input_ids": _ids(batch, _TOKENS), "decoder_input_ids": _ids(batch, 32)}


def _text_to_first_token(batch: int, _: Any) -> Inputs:
    mask = torch.ones(batch, _TOKENS, dtype=torch.long)
    return {"input_ids": _ids(batch, _TOKENS), "attention_mask": mask, "decoder_input_ids": _ids(batch, 1)}


def _speech(batch: int, model: Any) -> Inputs:
    features = torch.randn(batch, model.config.num_mel_bins, 2 * model.config.max_source_positions)
    return {"input_features": features, "decoder_input_ids": _ids(batch, 32)}


def _page(batch: int, _: Any) -> Inputs:
    boxes = torch.tensor([100, 100, 500, 600]).expand(batch, _TOKENS, 4).contiguous()
    return {"input_ids": _ids(batch, _TOKENS), "bbox": boxes, "pixel_values": torch.randn(batch, 3, 224, 224)}


def _picture(batch: int, _: Any) -> Inputs:
    ids = torch.tensor([[101, 4937, 1012, 3899, 1012, 102]]).repeat(batch, 1)
    return {
        "pixel_values": torch.randn(batch, 3, 800, 800),
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }


def _sound(batch: int, _: Any) -> Inputs:
    ids = _ids(batch, 16)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "input_features": torch.randn(batch, 4, 1001, 64),
        "is_longer": torch.ones(batch, 1, dtype=torch.bool),
    }


def _t5(model: str, **settings: Any) -> RealSize:
    cls, config = "T5ForConditionalGeneration", "T5Config"
    return RealSize(model, cls, config, {"vocab_size": 32128, **settings}, _text_to_text)


def _gated(**settings: Any) -> dict[str, Any]:
    return {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, **settings}


def _layers(width: int, layers: int, heads: int) -> dict[str, Any]:
    sides = ("encoder", "decoder")
    names = {f"{side}_layers": layers for side in sides} | {f"{side}_attention_heads": heads for side in sides}
    return {"d_model": width, **names, **{f"{side}_ffn_dim": 4 * width for side in sides}}


def _whisper(model: str, width: int, layers: int, heads: int, **settings: Any) -> RealSize:
    sizes = {**_layers(width, layers, heads), "vocab_size": 51865, "num_mel_bins": 80, **settings}
    cls = "WhisperForConditionalGeneration"
    return RealSize(model, cls, "WhisperConfig", sizes, _speech, many=16)


def _bart(model: str, width: int, layers: int, heads: int, vocabulary: int) -> RealSize:
    sizes = {**_layers(width, layers, heads), "vocab_size": vocabulary, "max_position_embeddings": 1024}
    cls = "BartForConditionalGeneration"
    return RealSize(model, cls, "BartConfig", sizes, _text_to_first_token, dtype=torch.float16)


def _grounding_dino(model: str, **backbone: Any) -> RealSize:
    stages = {"out_features": ["stage2", "stage3", "stage4"], "out_indices": [2, 3, 4]}
    nested = {"backbone_config": ("SwinConfig", {**stages, **backbone})}
    cls, config = "GroundingDinoForObjectDetection", "GroundingDinoConfig"
    return RealSize(model, cls, config, {}, _picture, many=4, nested=nested)


t5_small = _t5("t5-small", d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)
t5_base = _t5("t5-base", d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)
t5_3b = _t5("t5-3b", d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32)
flan_t5_large = _t5(
    "flan-t5-large",
    **_gated(d_model=1024, d_kv=64, d_ff=2816, num_layers=24, num_heads=16),
)
inclusively_reformulation_it5 = _t5(
    "inclusively-reformulation-it5",
    **_gated(d_model=1024, d_kv=64, d_ff=2816, num_layers=24, num_heads=16),
)
whisper_large_v3 = _whisper("whisper-large-v3", 1280, 32, 20, vocab_size=51866, num_mel_bins=128)
whisper_small = _whisper("whisper-small", 768, 12, 12)
whisper_base = _whisper("whisper-base", 512, 6, 8)
bart_large_cnn = _bart("bart-large-cnn", 1024, 12, 16, 50264)
bart_base = _bart("bart-base", 768, 6, 12, 50265)
rebel_large = _bart("rebel-large", 1024, 12, 16, 50272)
opus_mt_fr_en = RealSize(
    "opus-mt-fr-en",
    "MarianMTModel",
    "MarianConfig",
    {
        **_layers(512, 6, 8),
        "vocab_size": 59514,
        "max_position_embeddings": 512,
        "activation_function": "swish",
        "scale_embedding": True,
        "pad_token_id": 59513,
        "decoder_start_token_id": 59513,
    },
    _text_to_first_token,
    dtype=torch.float16,
)
biogpt = RealSize("biogpt", "BioGptForCausalLM", "BioGptConfig", {}, _texts())
blenderbot_400m_distill = RealSize(
    "blenderbot-400M-distill",
    "BlenderbotForConditionalGeneration",
    "BlenderbotConfig",
    {
        **_layers(1280, 12, 32),
        "encoder_layers": 2,
        "vocab_size": 8008,
        "max_position_embeddings": 128,
        "scale_embedding": True,
    },
    _text_to_text,
)
pegasus = RealSize(
    "PegasusForCausalLM",
    "PegasusForCausalLM",
    "PegasusConfig",
    {**_layers(1024, 16, 16), "vocab_size": 96103, "activation_function": "relu", "scale_embedding": True},
    _texts(),
)
layoutlmv3_base = RealSize(
    "layoutlmv3-base",
    "LayoutLMv3Model",
    "LayoutLMv3Config",
    {"max_position_embeddings": 514, "type_vocab_size": 1},
    _page,
)
# The published factors are measured values; which ones they are changes no graph and no time.
phi_4_mini_instruct = RealSize(
    "Phi-4-mini-instruct",
    "Phi3ForCausalLM",
    "Phi3Config",
    {
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 32,
        "num_attention_heads": 24,
        "num_key_value_heads": 8,
        "vocab_size": 200064,
        "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096,
        "partial_rotary_factor": 0.75,
        "tie_word_embeddings": True,
        "pad_token_id": 199999,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48},
    },
    _texts(),
    many=16,
    dtype=torch.bfloat16,
)
grounding_dino_tiny = _grounding_dino("grounding-dino-tiny")
grounding_dino_base = _grounding_dino(
    "grounding-dino-base",
    embed_dim=128,
    depths=[2, 2, 18, 2],
    num_heads=[4, 8, 16, 32],
    window_size=12,
    image_size=384,
)
longformer_base_4096 = RealSize(
    "longformer-base-4096",
    "LongformerModel",
    "LongformerConfig",
    {"max_position_embeddings": 4098, "vocab_size": 50265, "type_vocab_size": 1, "attention_window": [512] * 12},
    _texts(1000),
    many=8,
)
clap_htsat_fused = RealSize(
    "clap-htsat-fused",
    "ClapModel",
    "ClapConfig",
    {"audio_config": {"enable_fusion": True}},
    _sound,
    many=16,
)
