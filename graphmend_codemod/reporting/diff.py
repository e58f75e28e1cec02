"""A change of one file as a unified diff that `git apply` and `patch -p1` take, byte for byte."""

from __future__ import annotations

import difflib
import os
import re

from graphmend_codemod.core.colour import Paint
from graphmend_codemod.core.terminal import printable

_NEEDS_QUOTES = re.compile(rb'[\x00-\x1f\x7f"\\]')
_HIDING = r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
_NO_NEWLINE = b"\\ No newline at end of file\n"


def unified(path: str, before: bytes, after: bytes, paint: Paint | None = None, *, for_eyes: bool = False) -> bytes:
    """The diff of one file, empty if nothing changed. `path` is relative, with forward slashes.

    `for_eyes` shows characters that are not what they look like; such a diff is to be read, not applied.
    """
    name = os.fsencode(path.replace(os.sep, "/"))
    lines = difflib.diff_bytes(
        difflib.unified_diff, _lines(before), _lines(after), _header(b"a/" + name), _header(b"b/" + name)
    )
    return b"".join(_finished(_visible(line) if for_eyes else line, paint) for line in lines)


def hides_characters(diff: bytes) -> bool:
    """Whether a diff holds characters that change how the text around them is shown."""
    return re.search(_HIDING, diff.decode("utf-8", "replace")) is not None


def _visible(line: bytes) -> bytes:
    end = b"\n" if line.endswith(b"\n") else b""
    text = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "backslashreplace")
    return printable(text).encode() + end


def _lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _header(name: bytes) -> bytes:
    if _NEEDS_QUOTES.search(name):
        return b'"' + _NEEDS_QUOTES.sub(lambda match: b"\\%03o" % ord(match[0]), name) + b'"'
    return name + b"\t" if b" " in name else name


def _finished(line: bytes, paint: Paint | None) -> bytes:
    if not line.endswith(b"\n"):
        return _painted(line, paint) + b"\n" + _NO_NEWLINE
    return _painted(line[:-1], paint) + b"\n"


def _painted(line: bytes, paint: Paint | None) -> bytes:
    if paint is None or not paint.enabled:
        return line
    text = line.decode("utf-8", "surrogateescape")
    if text.startswith(("--- ", "+++ ")):
        text = paint.bold(text)
    elif text.startswith("@@"):
        text = paint.cyan(text)
    elif text.startswith(("-", "+")):
        text = paint.red(text) if text[0] == "-" else paint.green(text)
    return text.encode("utf-8", "surrogateescape")
