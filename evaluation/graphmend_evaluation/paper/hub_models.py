"""The models of the hub, from the code in the worktree and the files of their snapshots.

Factories for `graphmend_evaluation.measure`; weights are random where a snapshot has none. See `hub` for where the
files come from.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from graphmend_evaluation.paper.hub import FOLDER_VARIABLE, HUB_MODELS

Inputs = dict[str, Any]

_LENGTHS = (8, 8, 12)
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def chronos_bolt() -> tuple[nn.Module, list[Inputs]]:
    """A T5 that forecasts: three series, the last one longer."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting  # type: ignore[import-not-found]
    from transformers import AutoConfig

    snapshot = _snapshot("chronos-bolt-small")
    model = _made(ChronosBoltModelForForecasting, AutoConfig.from_pretrained(snapshot), snapshot)
    return model, [{"context": torch.randn(1, length)} for length in (64, 64, 80)]


def molformer() -> tuple[nn.Module, list[Inputs]]:
    """Its random features are drawn anew in every call unless it is told not to."""
    model = _remote("MoLFormer-XL-both-10pct", "AutoModel", deterministic_eval=True)
    return model, [{"input_ids": ids, "attention_mask": torch.ones_like(ids)} for ids in _three_texts(model)]


def florence2() -> tuple[nn.Module, list[Inputs]]:
    """In half precision, in which overflow is guarded after every layer."""
    model = _remote("Florence-2-large", "AutoModelForCausalLM").half()
    inputs = [
        {"input_ids": ids, "decoder_input_ids": ids[:, :1], "pixel_values": torch.randn(1, 3, 768, 768).half()}
        for ids in _three_texts(model)
    ]
    return model, inputs


def qwen_audio() -> tuple[nn.Module, list[Inputs]]:
    """Text without audio: whether there is some is what breaks the graph."""
    model = _remote("Qwen-Audio-Chat", "AutoModelForCausalLM")
    return model, [{"input_ids": ids} for ids in _three_texts(model)]


def minicpm_moe() -> tuple[nn.Module, list[Inputs]]:
    """A loop over experts in every layer."""
    model = _remote("moe-minicpm-x4-base", "AutoModelForCausalLM")
    return model, [{"input_ids": ids} for ids in _three_texts(model)]


def stella() -> tuple[nn.Module, list[Inputs]]:
    """As its configuration has it: padding is removed, which needs CUDA and xformers."""
    if not torch.cuda.is_available():
        raise RuntimeError("this row needs a CUDA device: its configuration asks for xformers' attention")
    model = _remote("stella-en-400M-v5", "AutoModel").cuda()
    texts = [ids.cuda() for ids in _three_texts(model)]
    return model, [
        {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        for ids in texts
    ]


def _remote(name: str, kind: str, **settings: Any) -> nn.Module:
    """A model whose classes are named by its own `config.json`, imported from the worktree."""
    snapshot = _snapshot(name)
    named = json.loads((snapshot / "config.json").read_text(encoding="utf-8"))["auto_map"]
    package = next(model.code for model in HUB_MODELS if model.name == name)
    config = _class(package, named["AutoConfig"]).from_pretrained(snapshot, **settings)
    return _made(_class(package, named.get(kind) or named["AutoModel"]), config, snapshot)


def _class(package: str, place: str) -> Any:
    """`module.Class`, which may follow `owner/repository--`."""
    module, _, name = place.rpartition("--")[2].rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}"), name)


def _made(cls: Any, config: Any, snapshot: Path) -> nn.Module:
    if any(found for pattern in _WEIGHTS for found in snapshot.glob(pattern)):
        model: nn.Module = cls.from_pretrained(snapshot, config=config)
        return model.eval()
    random: nn.Module = cls(config)
    return random.eval()


def _snapshot(name: str) -> Path:
    return Path(os.environ[FOLDER_VARIABLE]) / name


def _three_texts(model: Any) -> list[Tensor]:
    text = getattr(model.config, "text_config", model.config)
    return [torch.randint(3, min(1000, int(text.vocab_size)), (1, length)) for length in _LENGTHS]
