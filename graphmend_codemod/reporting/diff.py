"""A change of one file as a unified diff that `git apply` and `patch -p1` take, byte for byte."""

from __future__ import annotations

import difflib
import os
import re

from graphmend_codemod.reporting.colour import Paint

_NEEDS_QUOTES = re.compile(rb'[\x00-\x1f\x7f"\\]')
_NO_NEWLINE = b"\\ No newline at end of file\n"


def unified(path: str, before: bytes, after: bytes, paint: Paint | None = None) -> bytes:
    """The diff of one file, empty if nothing changed. `path` is relative, with forward slashes."""
    name = os.fsencode(path.replace(os.sep, "/"))
    lines = difflib.diff_bytes(
        difflib.unified_diff, _lines(before), _lines(after), _header(b"a/" + name), _header(b"b/" + name)
    )
    return b"".join(_finished(line, paint) for line in lines)


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
