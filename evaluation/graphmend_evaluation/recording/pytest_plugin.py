"""A pytest plugin that records calls of a repository's modules: how each was made, its weights and its inputs.

It is loaded with `-p` in the process that runs the tests, and writes as it goes: whatever the tests do next, what was
recorded stays. `index-PID.json` names what there is; each model has a file of its own, which only a process that runs
the repository's code anyway may unpickle.

What is wrapped: `torch.nn.Module.__new__`, which sees the arguments of every constructor, and `__call__`.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import pytest
    import torch

MOST_CALLS = 3
MOST_MODELS_OF_A_CLASS = 4
MOST_MODELS = 40
MOST_BYTES = 64 * 2**20
MOST_BYTES_IN_ALL = 2**30
LONGEST_REASON = 200


class _NotRecorded(Exception):
    """Why a call is not kept. The text is part of a line."""


@dataclass(frozen=True)
class Settings:
    """What the parent asks for. `files` are paths relative to `root`, whose classes are recorded."""

    root: Path
    files: frozenset[str]
    folder: Path


@dataclass
class _Entry:
    """One model: a class, made in one way, in one mode."""

    number: int
    class_name: str
    content: dict[str, Any]
    signatures: set[str] = field(default_factory=set)
    calls: list[bytes] = field(default_factory=list)


class Recorder:
    """Keeps the calls that are worth a measurement. `close` writes what was left out, and unwraps."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: WeakKeyDictionary[Any, bytes | str] = WeakKeyDictionary()
        self._touched: dict[type[Any], str | None] = {}
        self._entries: dict[tuple[str, str, bool, bool], _Entry] = {}
        self._left_out: dict[str, str] = {}
        self._bytes = 0
        self._depth = threading.local()
        self._undo: list[tuple[Any, str, Any]] = []

    def open(self) -> None:
        """Begin to listen."""
        import torch

        recorder = self
        base = torch.nn.Module
        original_call = base.__call__
        original_new = base.__dict__.get("__new__")

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            made = object.__new__(cls)
            recorder.made(made, args, kwargs)
            return made

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or recorder.name_of(type(module)) is None:
                return original_call(module, *args, **kwargs)
            with recorder.one_call(module, args, kwargs):
                return original_call(module, *args, **kwargs)

        self._undo = [(base, "__call__", original_call), (base, "__new__", original_new)]
        base.__new__ = staticmethod(new)  # type: ignore[method-assign]
        base.__call__ = call  # type: ignore[method-assign]

    def close(self) -> None:
        """Stop listening."""
        for owner, name, value in self._undo:
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        self._undo = []
        self._write_index()

    def name_of(self, cls: type[Any]) -> str | None:
        """`package.module:Class` of a class that is, or comes from one that is, defined in a file of interest."""
        if cls not in self._touched:
            self._touched[cls] = self._importable(cls) if any(map(self._of_interest, cls.__mro__)) else None
        return self._touched[cls]

    def made(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A constructor is about to run."""
        name = self.name_of(type(module))
        if name is None or self._is_full(name):
            return
        made: bytes | str
        try:
            made = _pickled((args, kwargs))
        except Exception as error:  # pickling runs the user's code, which may raise anything
            made = f"its constructor's arguments cannot be pickled ({_short(error)})"
        self._made[module] = made

    @contextmanager
    def one_call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        """Record the outermost call of a module of interest; what it calls in turn is covered by it."""
        if getattr(self._depth, "value", 0):
            yield
            return
        name = cast("str", self.name_of(type(module)))
        try:
            self._keep(name, module, args, kwargs)
            covered = 1
        except _NotRecorded as error:
            self._left_out.setdefault(name, str(error))
            covered = 0
        except Exception as error:  # pickling runs the user's code, which may raise anything
            self._left_out.setdefault(name, f"its inputs cannot be pickled ({_short(error)})")
            covered = 0
        self._depth.value = covered
        try:
            yield
        finally:
            self._depth.value = 0

    # ------------------------------------------------------------------

    def _of_interest(self, cls: type[Any]) -> bool:
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if file is None:
            return False
        path = Path(file).resolve()
        root = self._settings.root
        return path.is_relative_to(root) and path.relative_to(root).as_posix() in self._settings.files

    def _importable(self, cls: type[Any]) -> str | None:
        name = f"{cls.__module__}:{cls.__qualname__}"
        found: Any = sys.modules.get(cls.__module__)
        for part in cls.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is not None and found is not cls:
            return None  # an old form of a class that was replaced since
        if found is None:
            # A class in the making is called by nobody; one in a function cannot be found again.
            if "<locals>" in cls.__qualname__:
                self._left_out.setdefault(name, "it is defined inside a function")
                return None
            return name
        return name

    def _is_full(self, name: str) -> bool:
        mine = sum(entry.class_name == name for entry in self._entries.values())
        return mine >= MOST_MODELS_OF_A_CLASS or len(self._entries) >= MOST_MODELS

    def _keep(self, name: str, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import torch

        gradients = torch.is_grad_enabled() and any(each.requires_grad for each in module.parameters())
        made = self._made.get(module)
        key = (name, _digest(made), module.training, gradients)
        entry = self._entries.get(key)
        if entry is None:
            if self._is_full(name) or self._bytes > MOST_BYTES_IN_ALL:
                return
            entry = _Entry(len(self._entries), name, self._content(name, module, gradients))
        signature = _signature((args, kwargs))
        if signature in entry.signatures or len(entry.calls) >= MOST_CALLS:
            return
        content = {**entry.content, "calls": [*entry.calls, _pickled((args, kwargs))]}
        written = _pickled(content)
        if len(written) > MOST_BYTES:
            raise _NotRecorded(f"it takes {len(written) / 2**20:.0f} MiB, more than {MOST_BYTES // 2**20}")
        entry.signatures.add(signature)
        entry.calls = content["calls"]
        self._entries[key] = entry
        self._bytes += len(written)
        self._left_out.pop(name, None)
        _write(self._settings.folder / self._file(entry), written)
        self._write_index()

    def _content(self, name: str, module: torch.nn.Module, gradients: bool) -> dict[str, Any]:
        made = self._made.get(module)
        arguments = made if isinstance(made, bytes) else None
        state = {key: value.detach().clone() for key, value in module.state_dict().items()}
        whole = None
        if arguments is None or not _makes_again(module, arguments, state):
            try:
                whole = _pickled(module)
            except Exception as error:
                reason = made if isinstance(made, str) else "its constructor does not make it again"
                raise _NotRecorded(f"{reason}, and neither can the module ({_short(error)})") from error
            arguments = None
        return {
            "class": name,
            "arguments": arguments,
            "module": whole,
            "state": state,
            "train": module.training,
            "gradients": gradients,
        }

    def _file(self, entry: _Entry) -> str:
        return f"{os.getpid()}-{entry.number}.pt"

    def _write_index(self) -> None:
        models = [
            {
                "class": entry.class_name,
                "file": self._file(entry),
                "calls": len(entry.calls),
                "train": key[2],
                "gradients": key[3],
            }
            for key, entry in self._entries.items()
        ]
        text = json.dumps({"models": models, "left_out": self._left_out}, indent=1)
        _write(self._settings.folder / f"index-{os.getpid()}.json", text.encode())


def pytest_addoption(parser: pytest.Parser) -> None:
    """The settings come in a file, so that workers of pytest-xdist get them too."""
    parser.addoption("--graphmend-recording", metavar="FILE", help="settings of graphmend's recording of models")


def pytest_configure(config: pytest.Config) -> None:
    """Listen from before the first test file is imported."""
    file = config.getoption("--graphmend-recording")
    if file:
        recorder = Recorder(read_settings(Path(file)))
        recorder.open()
        config.add_cleanup(recorder.close)


def read_settings(path: Path) -> Settings:
    """What `write_settings` wrote."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Settings(Path(data["root"]), frozenset(data["files"]), Path(data["folder"]))


def write_settings(settings: Settings, path: Path) -> None:
    """For the process that runs the tests."""
    data = {"root": str(settings.root), "files": sorted(settings.files), "folder": str(settings.folder)}
    path.write_text(json.dumps(data), encoding="utf-8")


def _makes_again(module: torch.nn.Module, arguments: bytes, state: dict[str, Any]) -> bool:
    """Whether the constructor makes a module with the same weights by name and shape. Draws no random numbers."""
    import torch

    with torch.random.fork_rng(devices=[]):
        try:
            args, kwargs = _unpickled(arguments)
            again = type(module)(*args, **kwargs)
            again.load_state_dict(state, strict=True, assign=True)
        except Exception:  # the user's constructor may raise anything; the module itself is then kept
            return False
    return {name for name, _ in again.named_modules()} == {name for name, _ in module.named_modules()}


def _signature(value: Any) -> str:
    """Structure, dtypes and shapes, not contents."""
    import torch

    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{tuple(value.shape)}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_signature(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_signature, value)) + "]"
    return repr(value) if isinstance(value, bool | int | float | str | None) else type(value).__name__


def _digest(made: bytes | str | None) -> str:
    import hashlib

    return hashlib.sha256(made).hexdigest() if isinstance(made, bytes) else str(made)


def _pickled(value: Any) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(value, stream, pickle_module=pickle)
    return stream.getvalue()


def _unpickled(content: bytes) -> Any:
    import torch

    return torch.load(io.BytesIO(content), weights_only=False)


def _write(path: Path, content: bytes) -> None:
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:LONGEST_REASON]
