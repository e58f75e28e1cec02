"""Colours for terminals, and only for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True)
class Paint:
    """Wraps text in colour codes if `enabled`, else leaves it alone."""

    enabled: bool = False

    def _wrap(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text else text

    def bold(self, text: str) -> str:
        """For paths and headings."""
        return self._wrap(text, "1")

    def red(self, text: str) -> str:
        """For rule codes, errors and removed lines."""
        return self._wrap(text, "1;31")

    def green(self, text: str) -> str:
        """For added lines."""
        return self._wrap(text, "32")

    def yellow(self, text: str) -> str:
        """For reasons not to act."""
        return self._wrap(text, "33")

    def cyan(self, text: str) -> str:
        """For separators and marks."""
        return self._wrap(text, "36")

    def blue(self, text: str) -> str:
        """For the frame around source text."""
        return self._wrap(text, "1;34")


def paint_for(stream: TextIO, environment: Mapping[str, str]) -> Paint:
    """Colours for a terminal; `NO_COLOR` and `FORCE_COLOR`, if not empty, decide, in this order."""
    if environment.get("NO_COLOR"):
        return Paint(False)
    if environment.get("FORCE_COLOR"):
        return Paint(True)
    return Paint(stream.isatty() and environment.get("TERM") != "dumb")
