"""A model with real weights from the hub: what `huggingface-id:REPOSITORY[@REVISION][:Class]` names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from graphmend_evaluation.huggingface import inputs
from graphmend_evaluation.names import HubModel
from graphmend_evaluation.worktree import LoadError

# The plain words of huggingface_hub and its clients for a network that is not there.
_UNREACHABLE = ("connect", "offline", "resolve", "timed out", "timeout", "unreachable", "proxy", "name resolution")


def hub_model(name: HubModel) -> Callable[[], tuple[torch.nn.Module, list[dict[str, Any]]]]:
    """A factory that loads the model and makes inputs from its forward's signature.

    Raises `LoadError` when the hub cannot be reached, does not have the model, or the model needs code of its own that
    was not allowed.
    """
    config = _config(name)
    model_class = _class(name, config)

    def make() -> tuple[torch.nn.Module, list[dict[str, Any]]]:
        model = model_class.from_pretrained(
            name.repository, revision=name.revision or "main", trust_remote_code=name.trusted
        )
        return model.eval(), _calls(name, model)

    return make


def _config(name: HubModel) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(
            name.repository, revision=name.revision or "main", trust_remote_code=name.trusted
        )
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        if "trust_remote_code" in text:
            reason = "its repository brings code of its own; --trust-remote-code lets it run"
        elif any(word in text.lower() for word in _UNREACHABLE):
            reason = "the hub cannot be reached from here; run where it can, or download the model before"
        else:
            reason = text[:200]
        raise LoadError(f"{name.repository} cannot be loaded: {reason}") from error


def _class(name: HubModel, config: Any) -> Any:
    """The class by its name, else the one that the configuration names, else the plain model."""
    import transformers

    if name.name is not None:
        found = getattr(transformers, name.name, None)
        if found is None:
            raise LoadError(f"transformers has no class {name.name}")
        return found
    if name.trusted and getattr(config, "auto_map", None):
        kinds = [kind for kind in config.auto_map if kind.startswith("AutoModel")]
        return getattr(transformers, kinds[0] if kinds else "AutoModel")
    named = [getattr(transformers, each, None) for each in getattr(config, "architectures", None) or ()]
    return next((each for each in named if each is not None), transformers.AutoModel)


def _calls(name: HubModel, model: torch.nn.Module) -> list[dict[str, Any]]:
    """Inputs by the first plan with which the model can be called."""
    reason = "nothing could be tried"
    for plan in inputs.plans(type(model)):
        try:
            found = inputs.calls(model, plan)
            with torch.no_grad():
                model(**found[0])
        except Exception as error:  # forward may raise anything for inputs that it does not like
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        else:
            return found
    raise LoadError(f"no inputs are known for {name.repository}: {reason}")
