"""Make a configuration of the transformers package small, by what its attributes are called and what they hold.

No table of models: a width is recognised by its name or its size, and what must fit together (heads and widths, layers
and lists with an entry for each) is kept together. What a rule gets wrong, another `Recipe` may get right.
"""

from __future__ import annotations

import inspect
from typing import Any

from graphmend_evaluation.huggingface.facts import Facts, Recipe
from graphmend_evaluation.huggingface.sizes import smaller

_LEFT_ALONE = frozenset({"use_timm_backbone", "backbone", "use_pretrained_backbone", "dtype", "torch_dtype"})


class CannotShrink(Exception):
    """A configuration class that cannot be made without arguments. The text is one line."""


def shrunk(config_class: type[Any], recipe: Recipe) -> Any:
    """A small instance of `config_class`.

    Raises `CannotShrink` when the class cannot be made, and whatever its constructor raises for values it dislikes.
    """
    return _shrunk(_default(config_class), recipe)


def sub_configs(config: Any) -> dict[str, Any]:
    """The configurations inside `config`, by attribute."""
    return {name: value for name, value in vars(config).items() if _is_config(value)}


def _default(config_class: type[Any]) -> Any:
    try:
        config = config_class()
    except Exception as error:
        config = _composed(config_class)
        if config is None:
            raise CannotShrink(f"{config_class.__name__}() raises {type(error).__name__}: {error}") from error
    if getattr(config, "use_timm_backbone", False):
        # The backbone of another package, with weights from the network, has a counterpart here.
        config = config_class(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None)
    return config


def _composed(config_class: type[Any]) -> Any:
    """A configuration that asks for its parts, with a plain one for each."""
    from transformers import AutoConfig

    text = {"model_type": "bert"}
    picture = {"model_type": "vit"}
    sound = {"model_type": "wav2vec2"}
    name = config_class.__name__.lower()
    first = picture if "vision" in name else sound if "speech" in name else text
    parts: tuple[dict[str, dict[str, Any]], ...] = (
        {"encoder": first, "decoder": {"model_type": "bert", "is_decoder": True, "add_cross_attention": True}},
        {"text_encoder": {"model_type": "t5"}, "audio_encoder": {"model_type": "encodec"}, "decoder": {}},
        {"vision_config": picture, "text_config": text},
        {"question_encoder": {"model_type": "dpr"}, "generator": {"model_type": "bart"}},
    )
    for given in parts:
        try:
            made = config_class(**{key: dict(value) for key, value in given.items()})
        except Exception:  # the next combination may be the one that this class takes
            continue
        if any(_is_config(value) and not isinstance(value, AutoConfig) for value in vars(made).values()):
            return made
    return None


def _shrunk(default: Any, recipe: Recipe) -> Any:
    facts = Facts(default, recipe)
    changed: dict[str, Any] = {}
    own, parameters = _own_attributes(default), _parameters(type(default))
    for name, value in vars(default).items():
        if name.startswith("_") or name in _LEFT_ALONE or name not in own:
            continue
        # What the constructor computes from other arguments, it computes again.
        if parameters and name not in parameters and not _is_config(value) and "token_id" not in name:
            continue
        if _is_config(value):
            changed[name] = _as_dict(_shrunk(value, recipe))
            continue
        new = smaller(name, value, facts)
        if value is None and getattr(default, "vocab_size", 0) is None:
            # A vocabulary that a user must name comes with its special tokens.
            new = {"pad_token_id": 1, "mask_token_id": 2}.get(name, new)
        if new != value:
            changed[name] = new
    changed.update(_backbone(default))
    if _has_stages(default):
        _keep_outputs(default, changed, facts)
    return _made(type(default), {**_needed(default), **changed}, default)


def _made(config_class: type[Any], values: dict[str, Any], default: Any) -> Any:
    config = config_class(**values)
    for name, value in values.items():
        # A constructor may compute an attribute anew from others, which then also were made small.
        if _is_config(getattr(default, name, None)) and isinstance(getattr(config, name, None), dict):
            setattr(config, name, type(getattr(default, name))(**value))
    return config


def _needed(default: Any) -> dict[str, Any]:
    """Parts that the constructor insists on, in case none of them changed."""
    if not getattr(type(default), "is_composition", False):
        return {}
    return {name: _as_dict(value) for name, value in sub_configs(default).items()}


def _backbone(default: Any) -> dict[str, Any]:
    if not hasattr(default, "use_timm_backbone"):
        return {}
    return {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}


def _has_stages(default: Any) -> bool:
    return bool(getattr(default, "stage_names", None)) and getattr(default, "_out_indices", None) is not None


def _keep_outputs(default: Any, changed: dict[str, Any], facts: Facts) -> None:
    """A backbone gives out as many maps as before, from the last of its stages."""
    wanted = len(default._out_indices)
    stages = len(default.stage_names)
    if "depths" not in vars(default) and facts.old_layers == stages - 1:
        changed["out_indices"] = list(range(facts.layers + 1))[-wanted:]
    else:
        changed["out_indices"] = list(default._out_indices)


def _parameters(config_class: type[Any]) -> set[str]:
    """Names of the arguments of the constructor, none for one that takes any."""
    found: set[str] = set()
    for each in config_class.__mro__[:-2]:
        if "__init__" in vars(each) and each.__name__ != "PretrainedConfig":
            found |= set(inspect.signature(each.__init__).parameters) - {"self", "kwargs"}  # type: ignore[misc]
    return found


def _own_attributes(config: Any) -> set[str]:
    """What the class adds to the common base, and what it sets otherwise."""
    from transformers.configuration_utils import PretrainedConfig

    common = vars(PretrainedConfig())
    return {name for name, value in vars(config).items() if name not in common or common[name] != value}


def _as_dict(config: Any) -> dict[str, Any]:
    """Arguments that make `config` again: only those that its class does not take by itself."""
    try:
        usual: dict[str, Any] = type(config)().to_dict()
    except Exception:  # a class that cannot be made without arguments needs all of them
        usual = {}
    values: dict[str, Any] = config.to_dict()
    kept = {name: value for name, value in values.items() if name not in usual or usual[name] != value}
    for name in ("torch_dtype", "transformers_version"):
        kept.pop(name, None)
    return {"model_type": config.model_type, **kept}


def _is_config(value: Any) -> bool:
    return hasattr(value, "to_dict") and hasattr(value, "model_type")
