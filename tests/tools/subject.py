"""The module under test: loaded from text, and called with inputs that are varied in dtype, content and sharing."""

from __future__ import annotations

import inspect
import itertools
import linecache
import os
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from tests.tools.snapshot import SUBJECT

_NUMBERS = itertools.count()

Transform = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Source:
    """Module text and the name under which Python knows its lines."""

    text: str
    filename: str


def register(text: str) -> Source:
    """Give `text` a file name, so that tracebacks, warnings and Dynamo find its lines."""
    filename = f"<subject {next(_NUMBERS)}>/subject.py"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    # Else `inspect`, which torch asks at every compilation and operator, looks for the file among all loaded modules.
    for name in (filename, os.path.abspath(filename)):
        inspect.modulesbyfile[name] = SUBJECT
    return Source(text, filename)


def forget(source: Source) -> None:
    """Drop the lines of a source that is not needed any more."""
    linecache.cache.pop(source.filename, None)
    for name in (source.filename, os.path.abspath(source.filename)):
        inspect.modulesbyfile.pop(name, None)


def load(source: Source) -> types.ModuleType:
    """A fresh module from `source`. Its name is the same for every source, as loggers are named after it."""
    module = types.ModuleType(SUBJECT)
    module.__file__ = source.filename
    exec(_code(source), vars(module))
    return module


@lru_cache(maxsize=8)
def _code(source: Source) -> types.CodeType:
    return compile(source.text, source.filename, "exec", dont_inherit=True)


def evaluate(expression: str, module: types.ModuleType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments from `expression`: a tuple, a dict, or one argument alone.

    Names are those of `module`, and `torch`, `nan`, `inf`.
    """
    names: dict[str, Any] = {"torch": torch, "nan": float("nan"), "inf": float("inf"), **vars(module)}
    value = eval(_expression(expression), names)
    if isinstance(value, dict):
        return (), value
    if isinstance(value, tuple):
        return value, {}
    return (value,), {}


@lru_cache(maxsize=64)
def _expression(text: str) -> types.CodeType:
    return compile(text.strip(), "<string>", "eval", dont_inherit=True)


def mapped(value: Any, function: Transform) -> Any:
    """`value` with every tensor in it, in nested containers too, replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, list):
        return [mapped(item, function) for item in value]
    if isinstance(value, tuple):
        return tuple(mapped(item, function) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, function) for key, item in value.items()}
    return value


def _floating(function: Transform) -> Transform:
    return lambda tensor: function(tensor) if tensor.is_floating_point() else tensor


def _one(value: float) -> Transform:
    """The last element becomes `value`."""

    def put(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        if tensor.numel():
            tensor.view(-1)[-1] = value
        return tensor

    return _floating(put)


def _full(value: float) -> Transform:
    return _floating(lambda tensor: torch.full_like(tensor, value))


def _cast(dtype: torch.dtype) -> Transform:
    return _floating(lambda tensor: tensor.to(dtype))


def _empty(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:0] if tensor.dim() else tensor


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Rows that share one memory: in-place writes are refused."""
    return tensor[:1].expand(tensor.shape) if tensor.dim() and tensor.shape[0] else tensor


def _inverted(tensor: torch.Tensor) -> torch.Tensor:
    return ~tensor if tensor.dtype == torch.bool else -tensor


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor], dim=-1)[..., 0]


VARIANTS: Mapping[str, Transform] = {
    "as given": lambda tensor: tensor,
    "negative": _inverted,
    "zero": torch.zeros_like,
    "large": _floating(lambda tensor: tensor * 1e5),
    "one nan": _one(float("nan")),
    "one inf": _one(float("inf")),
    "all nan": _full(float("nan")),
    "all -inf": _full(float("-inf")),
    "empty": _empty,
    "expanded": _expanded,
    "strided": _strided,
    "float16": _cast(torch.float16),
    "bfloat16": _cast(torch.bfloat16),
    "float64": _cast(torch.float64),
    "int64": _cast(torch.int64),
    "bool": _cast(torch.bool),
}
"""What becomes of each tensor of the given inputs, by name."""


def parameter_dtype(variant: str) -> torch.dtype | None:
    """The dtype that a module's parameters get in a variant, None for their own."""
    return {"float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}.get(variant)
