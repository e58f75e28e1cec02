"""Inputs for a model of the transformers package, from the signature of its `forward` and its configuration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from graphmend_evaluation.huggingface.facts import VOCABULARY
from graphmend_evaluation.huggingface.shrink import sub_configs

# Below are tokens that open, close, pad and mask; above are those that stand for a picture.
_PLAIN_TOKENS = (10, 130)


@dataclass(frozen=True)
class Shape:
    """One call: `batch` samples of `length` tokens, `masked` where the last tokens of one sample are padding."""

    batch: int
    length: int
    mask: bool
    masked: bool = False
    picture: float = 1.0


SHAPES = (
    Shape(batch=1, length=20, mask=True),
    Shape(batch=2, length=33, mask=False),
    Shape(batch=2, length=20, mask=True, masked=True),
)


@dataclass(frozen=True)
class Plan:
    """Which of a model's many inputs it gets. `tokens` for pictures stand in the text, where it asks for them."""

    media: str = "picture"
    sound: str = "features"
    side: int | None = None
    tokens: int = 0
    token: int | None = None
    optional: frozenset[str] = field(default_factory=frozenset)


class NoInput(Exception):
    """A parameter that nothing is known to give to. The text is one line."""


def calls(model: torch.nn.Module, plan: Plan) -> list[dict[str, Any]]:
    """Keyword arguments for some calls, each of another shape.

    Raises `NoInput` when a parameter without default is of a kind that is not known.
    """
    return [_Maker(model, plan, shape).inputs() for shape in SHAPES]


LABELS = ("tokens", "classes", "none")
"""Kinds of labels, in the order in which they are tried."""


def labelled(model: torch.nn.Module, call: dict[str, Any], kind: str) -> dict[str, Any]:
    """The call with labels: the text's own tokens, or class 0 for each sample.

    Raises `NoInput` when the model takes no labels or has no text.
    """
    if kind == "none":
        return call
    text = call.get("decoder_input_ids", call.get("input_ids"))
    if "labels" not in inspect.signature(model.forward).parameters or (kind == "tokens" and text is None):
        raise NoInput(f"{type(model).__name__} takes no labels of this kind")
    if kind == "tokens" and text is not None:
        return {**call, "labels": text.clone()}
    batch = next(value.shape[0] for value in call.values() if isinstance(value, Tensor))
    return {**call, "labels": torch.zeros(batch, dtype=torch.int64)}


def cast(value: Any, dtype: torch.dtype) -> Any:
    """`value` with each floating-point tensor in `dtype`."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {name: cast(item, dtype) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(cast(item, dtype) for item in value)
    return value


class _Maker:
    def __init__(self, model: Any, plan: Plan, shape: Shape) -> None:
        self.model = model
        self.config: Any = getattr(model, "config", None)
        self.plan = plan
        self.shape = shape
        self.parameters = inspect.signature(model.forward).parameters
        self.has_text = "input_ids" in self.parameters

    def inputs(self) -> dict[str, Any]:
        """All arguments for this call."""
        found = {}
        for name, parameter in self.parameters.items():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            required = parameter.default is parameter.empty
            if not (required or self._wanted(name)):
                continue
            value = self._make(name)
            if value is not None:
                found[name] = value
            elif required:
                raise NoInput(f"nothing is known to give to {type(self.model).__name__}.forward({name})")
        return found

    def _wanted(self, name: str) -> bool:
        main = getattr(self.model, "main_input_name", "input_ids")
        if name in self.plan.optional:
            return True
        if re.search(r"pixel|image|video|flattened", name) and self.plan.media == "none":
            return False
        if re.search(r"input_features|input_values|audio|speech", name) and self.plan.sound == "none":
            return False
        if name == "attention_mask":
            return self.has_text and self.shape.mask
        if name == "image_grid_thw":
            return self.plan.media == "patches"
        return name == main or name in _USUAL

    def _make(self, name: str) -> Any:
        for pattern, make in _MAKERS:
            if pattern.search(name):
                return make(self, name)
        return None

    def fact(self, *names: str, default: int) -> int:
        """The first number that the configuration, or one inside it, has by one of `names`."""
        for config in _all_configs(self.config):
            for name in names:
                value = getattr(config, name, None)
                if isinstance(value, list | tuple) and value and isinstance(value[0], int):
                    value = value[0]
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return default

    def side(self) -> int:
        """Of a picture."""
        if self.plan.side is not None:
            return self.plan.side
        return self.fact("image_size", "img_size", "input_size", default=64)

    def vocabulary(self) -> int:
        """How many tokens there are."""
        return min(self.fact("vocab_size", "text_vocab_size", "input_vocab_size", default=VOCABULARY), VOCABULARY)

    # ------------------------------------------------------------------ makers

    def ids(self, name: str) -> Tensor:
        first, last = _PLAIN_TOKENS
        last = min(last, self.vocabulary())
        length = self.shape.length if "decoder" not in name else max(4, self.shape.length // 4)
        ids = torch.randint(min(first, last - 1), last, (self.shape.batch, length))
        if self.plan.tokens and self.plan.token is not None and "decoder" not in name:
            pictures = torch.full((self.shape.batch, self.plan.tokens), self.plan.token)
            ids = torch.cat([ids[:, :2], pictures, ids[:, 2:]], dim=1)
        return ids

    def mask(self, name: str) -> Tensor:
        length = self.shape.length + (self.plan.tokens if self.plan.token is not None else 0)
        mask = torch.ones(self.shape.batch, length, dtype=torch.long)
        if self.shape.masked:
            mask[0, -4:] = 0
        return mask

    def zeros_like_ids(self, name: str) -> Tensor:
        return torch.zeros(self.shape.batch, self.shape.length, dtype=torch.long)

    def boxes(self, name: str) -> Tensor:
        corners = torch.randint(0, 50, (self.shape.batch, self.shape.length, 2))
        return torch.cat([corners, corners + torch.randint(1, 50, corners.shape)], dim=-1)

    def picture(self, name: str) -> Tensor:
        channels = self.fact("num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
        side = self.side()
        batch = self.shape.batch
        if self.plan.media == "patches":
            patch = self.fact("patch_size", "spatial_patch_size", default=8)
            return torch.randn(16 * batch, channels * self.fact("temporal_patch_size", default=1) * patch * patch)
        if self.plan.media == "video":
            return torch.randn(batch, self.fact("num_frames", default=2), channels, side, side)
        if self.plan.media == "tiles":
            return torch.randn(batch, 1, self.fact("max_num_tiles", default=1), channels, side, side)
        return torch.randn(batch, channels, side, side)

    def grid(self, name: str) -> Tensor:
        return torch.tensor([[1, 4, 4]] * self.shape.batch)

    def picture_mask(self, name: str) -> Tensor:
        return torch.ones(self.shape.batch, self.side(), self.side(), dtype=torch.long)

    def picture_sizes(self, name: str) -> Tensor:
        return torch.tensor([[self.side(), self.side()]] * self.shape.batch)

    def flattened(self, name: str) -> Tensor:
        size = self.fact("patch_embed_hidden_size", default=768)
        places = torch.arange(8).view(1, 8, 1).expand(self.shape.batch, 8, 1).float()
        return torch.cat([places % 4, places // 4, torch.randn(self.shape.batch, 8, size)], dim=-1)

    def sound(self, name: str) -> Tensor:
        bins = self.fact("num_mel_bins", "feature_size", "input_feat_per_channel", "nb_mels", "input_dim", default=80)
        batch = self.shape.batch
        if self.plan.sound == "wave":
            return torch.randn(batch, 3200 + 160 * self.shape.length)
        if self.plan.sound == "channel":
            return torch.randn(batch, self.fact("audio_channels", default=1), 3200)
        if self.plan.sound == "frames":
            return torch.randn(batch, self.fact("max_length", default=2 * self.shape.length), bins)
        if self.plan.sound == "long":
            return torch.randn(batch, 1, 1001, 64)
        return torch.randn(batch, bins, 2 * self.fact("max_source_positions", default=32))

    def spectrogram(self, name: str) -> Tensor:
        return torch.randn(self.shape.batch, self.shape.length, self.fact("model_in_dim", "num_mel_bins", default=80))

    def visual(self, name: str) -> Tensor:
        size = 4 if "pos" in name else self.fact("visual_feat_dim", "visual_embedding_dim", default=64)
        return torch.rand(self.shape.batch, 4, size)

    def series(self, name: str) -> Tensor | None:
        lags = getattr(self.config, "lags_sequence", None) or [0]
        length = self.fact("context_length", default=32)
        past = length + max(lags)
        future = self.fact("prediction_length", default=8)
        steps = future if "future" in name else past
        if "time_features" in name:
            return torch.randn(self.shape.batch, steps, int(getattr(self.config, "num_time_features", 0)))
        channels = int(getattr(self.config, "num_input_channels", getattr(self.config, "input_size", 1)))
        shape = (
            (self.shape.batch, steps)
            if channels == 1 and "lags_sequence" in vars(self.config)
            else (
                self.shape.batch,
                steps,
                channels,
            )
        )
        return torch.ones(shape) if "mask" in name else torch.rand(shape)

    def vector(self, name: str) -> Tensor:
        return torch.randn(self.shape.batch, self.shape.length, self.fact("hidden_size", "d_model", "dim", default=64))

    def codes(self, name: str) -> Tensor:
        return torch.randint(0, 100, (self.shape.batch, self.fact("num_codebooks", default=1), self.shape.length))

    def trajectory(self, name: str) -> Tensor | None:
        """What reinforcement learning models look at."""
        length = self.shape.length
        batch = self.shape.batch
        sizes = {"states": self.fact("state_dim", default=17), "actions": self.fact("act_dim", default=4)}
        if name in sizes:
            return torch.randn(batch, length, sizes[name])
        if name in ("rewards", "returns_to_go"):
            return torch.randn(batch, length, 1)
        if name == "timesteps":
            return torch.arange(length).expand(batch, length).contiguous()
        return None


_USUAL = frozenset(
    "input_ids attention_mask decoder_input_ids pixel_values input_features input_values bbox pixel_values_videos "
    "past_time_features visual_feats visual_pos visual_embeds spectrogram image flattened_patches past_values "
    "future_values future_time_features past_observed_mask states actions rewards returns_to_go timesteps".split()
) - {"pixel_values_videos", "future_values"}
_MAKERS: tuple[tuple[re.Pattern[str], Callable[[_Maker, str], Any]], ...] = tuple(
    (re.compile(pattern), maker)
    for pattern, maker in (
        (r"input_ids$|^question$|^tokens$", _Maker.ids),
        (r"time_features|past_values|future_values|observed_mask", _Maker.series),
        (r"pixel_mask|pixel_attention_mask", _Maker.picture_mask),
        (r"attention_mask$", _Maker.mask),
        (r"token_type_ids", _Maker.zeros_like_ids),
        (r"^bbox$", _Maker.boxes),
        (r"grid_thw", _Maker.grid),
        (r"image_sizes|original_sizes|target_sizes", _Maker.picture_sizes),
        (r"flattened_patches", _Maker.flattened),
        (r"visual_", _Maker.visual),
        (r"pixel_values|^images?$|^prompt_pixel|task_input|^pixels$", _Maker.picture),
        (r"spectrogram", _Maker.spectrogram),
        (r"input_features|input_values|audio_values|waveform", _Maker.sound),
        (r"^(states|actions|rewards|returns_to_go|timesteps)$", _Maker.trajectory),
        (r"codes$", _Maker.codes),
        (r"hidden_states|inputs_embeds|^x$|encoder_outputs?_", _Maker.vector),
    )
)


def plans(model_class: type[Any]) -> Iterator[Plan]:
    """What to try, the most telling first."""
    names = set(inspect.signature(model_class.forward).parameters)
    seen = any(re.search(r"pixel|image|flattened", name) for name in names)
    heard = any(re.search(r"input_features|input_values|audio", name) for name in names)
    media = ["picture", "video", "patches", "tiles"] if seen else ["picture"]
    sound = ["features", "wave", "frames", "channel", "long"] if heard else ["features"]
    for one in media:
        for other in sound:
            yield Plan(media=one, sound=other)
    if seen:
        yield from (Plan(media="picture", side=side) for side in (64, 128, 224))
    if "input_ids" in names and (seen or heard):
        yield Plan(media="none", sound="none")


def _all_configs(config: Any) -> Iterator[Any]:
    if config is None:
        return
    yield config
    for inner in sub_configs(config).values():
        yield from _all_configs(inner)


def as_keywords(dummy: Mapping[str, Any]) -> dict[str, Any]:
    """A model's own `dummy_inputs`, without what is None."""
    return {name: value for name, value in dummy.items() if value is not None}
