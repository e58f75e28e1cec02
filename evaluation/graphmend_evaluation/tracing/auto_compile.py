"""Compile what a program calls and never compiles: the outermost modules, with the backend that costs least.

Loaded by its path into the user's process, like `recorder`, and like it free of graphmend.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

_MODULE = "torch.nn.modules.module"


def when_torch_is_imported() -> None:
    """Compile from the moment in which `torch.nn.Module` is there."""
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, by asking the other finders, and looks at it once it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._theirs.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._theirs.exec_module(module)
        compile_outermost(module.Module)


def compile_outermost(cls: Any) -> None:
    """Let each outermost call of a module go through `torch.compile`; calls inside of it are as they were.

    What prepares data is left alone: images and texts are transformed by modules, too, which nobody compiles.
    While the outermost call runs, `__call__` is torch's own again: Dynamo knows that one, and traces through it.
    """
    original = cls.__call__
    lock = threading.RLock()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if sys.modules["torch"].compiler.is_compiling():  # in a function that the program compiles by itself
            return original(self, *args, **kwargs)
        if _prepares_data(self, args, kwargs):  # what it calls has its own chance
            return original(self, *args, **kwargs)
        with lock:
            cls.__call__ = original
            try:
                if _can_compile(self):
                    self.compile(backend="eager")
                return original(self, *args, **kwargs)
            finally:
                cls.__call__ = call

    cls.__call__ = call


def _prepares_data(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True in a data loader's worker, and for a module without state that is given no tensor."""
    torch = sys.modules["torch"]
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        return True
    held = itertools.chain(module.parameters(), module.buffers())
    return next(held, None) is None and not _has_tensor([*args, *kwargs.values()], torch.Tensor)


def _has_tensor(values: Iterable[Any], kind: type) -> bool:
    return any(
        isinstance(each, kind)
        or (isinstance(each, (list, tuple)) and _has_tensor(each, kind))
        or (isinstance(each, dict) and _has_tensor(each.values(), kind))
        for each in values
    )


def _can_compile(module: Any) -> bool:
    torch = sys.modules["torch"]
    if getattr(module, "_compiled_call_impl", None) is not None or isinstance(module, torch.jit.ScriptModule):
        return False
    wrapper = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", None)
    return wrapper is None or not isinstance(module, wrapper)
