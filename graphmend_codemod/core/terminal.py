"""Printing to a terminal or log, with names, source text and messages from outside escaped.

A file name, a line of source or an answer of a forge may hold characters that move the cursor, change the title, hide
text or turn its direction around. They are shown as Python writes them in a string: `\\x1b`, `\\u202e`.
"""

from __future__ import annotations

import sys
from typing import TextIO

COLOURS = frozenset({"0", "1", "1;31", "32", "33", "36", "1;34"})
_ESCAPE = r"(\x1b\[[0-9;]{1,4}m)"


def printable(text: str) -> str:
    """The text on one line, without characters that are not shown as themselves."""
    if text.isprintable():
        return text
    text = text.replace("\t", "    ")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def say(text: str, stream: TextIO | None = None, *, end: str = "\n", flush: bool = False) -> None:
    """Print lines of ours, whatever of others is in them: of what is not printable only our colours stay."""
    shown = text if text.isprintable() else "\n".join(map(_coloured, text.split("\n")))
    print(shown, file=stream if stream is not None else sys.stdout, end=end, flush=flush)


def _coloured(line: str) -> str:
    if "\x1b" not in line:
        return printable(line)
    import re

    pieces = re.split(_ESCAPE, line)
    return "".join(piece if piece[2:-1] in COLOURS and piece[:1] == "\x1b" else printable(piece) for piece in pieces)
