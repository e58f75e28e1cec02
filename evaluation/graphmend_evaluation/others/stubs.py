"""Stand-ins for binary companions that have no build for this torch, so that their Python code can run."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
import unittest.mock
from collections.abc import Iterable
from typing import Any

_KEPT: list[Any] = []
_COMPILE: list[Any] = []


def install() -> None:
    """Declare the operators of torchvision for which its Python code registers fakes; call before importing it."""
    import torch

    _COMPILE.append(torch.compile)
    if importlib.util.find_spec("torchvision") is None or _KEPT:
        return
    made: Any = torch.library.Library
    library = made("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    disabled: Any = torch.compiler.disable
    library.impl("nms", disabled(_nms), "CPU")  # the real one is C++: Dynamo compiles nothing in it
    _KEPT.append(library)


def stand_in(names: Iterable[str]) -> None:
    """Importable modules without content for those of `names` that are not installed."""
    for name in names:
        if _installed(name):
            continue
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            if _installed(".".join(parts[:count])):
                continue
            module = types.ModuleType(".".join(parts[:count]))
            module.__dict__.update(__path__=[], __spec__=importlib.machinery.ModuleSpec(module.__name__, None))
            module.__getattr__ = _anything  # type: ignore[method-assign]
            sys.modules.setdefault(module.__name__, module)


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _anything(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return unittest.mock.MagicMock(name=name)


def let_operators_pass() -> None:
    """Take away torchvision's test for its binary operators; call when a model's modules are imported.

    Also what Lightning puts in the place of `torch.compile`: it copies the options, and a backend may hold a lock.
    """
    if _COMPILE:
        sys.modules["torch"].compile = _COMPILE[0]  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if name.startswith("torchvision.ops.") and hasattr(module, "_assert_has_ops"):
            vars(module)["_assert_has_ops"] = _nothing


def _nothing() -> None:
    pass


def _nms(boxes: Any, scores: Any, threshold: float) -> Any:
    """Greedy suppression: the best box stays, boxes that overlap it by more than `threshold` go."""
    import torch

    order = scores.argsort(descending=True, stable=True).tolist()
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[int] = []
    for index in order:
        if kept:
            others = boxes[kept]
            low, high = torch.maximum(boxes[index, :2], others[:, :2]), torch.minimum(boxes[index, 2:], others[:, 2:])
            inner = (high - low).clamp(min=0).prod(1)
            if bool((inner / (areas[index] + areas[kept] - inner) > threshold).any()):
                continue
        kept.append(index)
    return torch.tensor(kept, dtype=torch.int64, device=boxes.device)
