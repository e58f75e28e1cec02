"""Make a recorded model again: only in a process that runs the repository's code anyway, as unpickling runs it."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable
from typing import Any

import torch

from graphmend_evaluation.counting import Call
from graphmend_evaluation.names import RecordedModel
from graphmend_evaluation.worktree import LoadError


def recorded_model(name: RecordedModel) -> Callable[[], Any]:
    """A factory that makes the module from its constructor's arguments, or unpickles it where those cannot do.

    Raises `LoadError` when the recording is not there. Lets through what importing the class raises.
    """
    entry = json.loads(name.path.read_text(encoding="utf-8"))["models"][name.number]
    file = name.path.with_name(str(entry["file"]))
    if not file.is_file():
        raise LoadError(f"the recording {file} is gone: run the tests again with --from-tests")
    model_class = _class(name.class_name)
    content = load(file.read_bytes())

    def make() -> Any:
        module = _module(model_class, content)
        calls = [Call(*load(call)) for call in content["calls"]]
        return module, calls, {"train": content["train"], "gradients": content["gradients"]}

    return make


def _class(name: str) -> Any:
    module_name, _, qualified_name = name.partition(":")
    found: Any = importlib.import_module(module_name)
    for part in qualified_name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise LoadError(f"{name}, which the tests called, is not there any more")
    return found


def _module(model_class: Any, content: dict[str, Any]) -> torch.nn.Module:
    if content["arguments"] is None:
        whole: torch.nn.Module = load(content["module"])
        return whole
    args, kwargs = load(content["arguments"])
    module: torch.nn.Module = model_class(*args, **kwargs)
    # Assigned, not copied: the tests may have changed the dtype.
    state = {name: tensor.clone() for name, tensor in content["state"].items()}
    module.load_state_dict(state, strict=True, assign=True)
    return module


def load(content: bytes) -> Any:
    """Unpickle: runs code."""
    return torch.load(io.BytesIO(content), weights_only=False)
