"""Keep what a run says: log records, warnings and prints, in one stream and in order."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

import torch

from graphmend_evaluation.results import Message

_TORCH = Path(torch.__file__).parent
_F = TypeVar("_F", bound=Callable[..., Any])


def _untraced(function: _F) -> _F:
    """Keep Dynamo out of what listens: it would count frames and breaks that are not the model's."""
    return cast("_F", torch.compiler.disable(function))  # type: ignore[no-untyped-call]


class Stream:
    """Messages in the order in which they came."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._kept: list[Message] = []

    def take(self) -> tuple[Message, ...]:
        """What came since the last time."""
        taken = tuple(message for message in self._kept if message.text)
        self._kept.clear()
        return taken

    def keep(self, stream: str, level: str, text: str, where: str) -> None:
        """Add a message; what is printed in pieces becomes one."""
        last = self._kept[-1] if self._kept else None
        if stream in ("stdout", "stderr") and last is not None and last.stream == stream:
            self._kept[-1] = Message(stream, level, last.text + text, where)
        else:
            self._kept.append(Message(stream, level, text, where))

    def place(self, path: str) -> str:
        """`path` relative to the repository root, where it is inside."""
        return Path(path).relative_to(self._root).as_posix() if Path(path).is_relative_to(self._root) else path


class _Records(logging.Handler):
    def __init__(self, stream: Stream) -> None:
        super().__init__(logging.NOTSET)
        self._stream = stream
        self._last: logging.LogRecord | None = None

    @_untraced
    def emit(self, record: logging.LogRecord) -> None:
        own_log = record.name == "torch" or record.name.startswith("torch.")
        if own_log or record is self._last:  # a record reaches every logger above it that has this handler
            return
        self._last = record
        where = f"{self._stream.place(record.pathname)}:{record.funcName}"
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__}: {record.exc_info[1]})"
        self._stream.keep(record.name, record.levelname, text, where)


class _Print(io.TextIOBase):
    def __init__(self, stream: Stream, name: str) -> None:
        super().__init__()
        self._stream = stream
        self._name = name

    def writable(self) -> bool:
        return True

    @_untraced
    def write(self, text: str) -> int:
        self._stream.keep(self._name, "", text, "")
        return len(text)


@contextlib.contextmanager
def listening(root: Path) -> Iterator[Stream]:
    """Everything that is said while this is open goes into the stream; warnings every time, not once a place."""
    stream = Stream(root)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always")
        warnings.showwarning = _warning_keeper(stream)
        stack.enter_context(contextlib.redirect_stdout(_Print(stream, "stdout")))
        stack.enter_context(contextlib.redirect_stderr(_Print(stream, "stderr")))
        stack.enter_context(_on_all_loggers(_Records(stream)))
        yield stream


def _warning_keeper(stream: Stream) -> Callable[..., None]:
    @_untraced
    def keep(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not Path(filename).is_relative_to(_TORCH / "_dynamo"):
            stream.keep("warnings", category.__name__, str(message), stream.place(filename))

    return keep


@contextlib.contextmanager
def _on_all_loggers(handler: logging.Handler) -> Iterator[None]:
    """Also on loggers that do not propagate, whose records never reach the root."""
    known: list[Any] = [logging.getLogger(), *logging.root.manager.loggerDict.values()]
    loggers = [
        logger
        for logger in known
        if isinstance(logger, logging.Logger) and (logger is logging.root or not logger.propagate)
    ]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
