"""One line on a terminal that says what is being done, and goes away afterwards."""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import TextIO

from graphmend_codemod.core.terminal import printable


class ProgressLine:
    """Writes over itself on a terminal; says nothing anywhere else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = stream.isatty()

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, line: str) -> None:
        """Show `line` in place of the last one."""
        if self._shown:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{printable(line)[:width]}")
            self._stream.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
