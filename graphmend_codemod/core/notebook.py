"""Jupyter notebooks as one Python text, and changes of that text put back into their cells, byte for byte.

Only the `source` of a changed cell is written anew, in the way it was spelled; everything else in the file, outputs and
metadata included, keeps its bytes. Lines for IPython (`%matplotlib inline`, `!pip install x`) stand as `pass` in the
Python text. A cell that is no Python then, or is for another program (`%%bash`), is left out of it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.core.source import SourceError

SUFFIX = ".ipynb"
_SPACE = re.compile(r"[ \t\r\n]*")
_MAGIC = re.compile(r"(?m)^([ \t]*)([%!?][^\n]*)$")
_PYTHON_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")
_LANGUAGES = (None, "", "python", "python3", "ipython", "ipython3")
_DECODER = json.JSONDecoder()


class Cell(NamedTuple):
    """One cell of code. `number` counts all cells from 1; `start` and `end` are the offsets of its source in the file.

    `shown` is what the Python text has for it, from its line `line` on; None if it is left out.
    """

    number: int
    start: int
    end: int
    source: str
    shown: str | None
    line: int


class Notebook:
    """A notebook file. `text` is its code as one module."""

    def __init__(self, raw: bytes) -> None:
        """SourceError if it is no notebook of format 4."""
        try:
            self._json = raw.decode("utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8")
            self._start = raw[: len(raw) - len(self._json.encode())]
            places = list(_sources(self._json))
            document = json.loads(self._json)
            python = _is_python(document)
        except (ValueError, RecursionError, TypeError, AttributeError, KeyError, IndexError) as error:
            raise SourceError(f"is not a valid notebook: {str(error).partition(chr(10))[0]}") from error
        sources = places if python else []
        self._mark = "# %% cell"
        while any(self._mark in source for _, _, _, source in sources):
            self._mark += "_"
        self.cells = tuple(self._cells(sources))
        shown = [f"{self._mark} {cell.number}\n{cell.shown}\n" for cell in self.cells if cell.shown is not None]
        self.text = "".join(shown)

    def _cells(self, sources: Sequence[tuple[int, int, int, str]]) -> Iterator[Cell]:
        line = 1
        for number, start, end, source in sources:
            shown = _python(source, f"{self._mark} magic")
            yield Cell(number, start, end, source, shown, line + 1)
            line += 0 if shown is None else shown.count("\n") + 2

    def place(self, line: int) -> tuple[int, int]:
        """The number of the cell that a line of `text` is in, and the line in that cell."""
        cell = max((each for each in self.cells if each.shown is not None and each.line <= line), key=lambda x: x.line)
        return cell.number, line - cell.line + 1

    def with_text(self, text: str) -> bytes:
        """The file with `text` in the cells; SourceError if it cannot be told which line belongs to which cell."""
        parts = re.split(rf"(?m)^{re.escape(self._mark)} (\d+)\n", text)
        shown = [cell for cell in self.cells if cell.shown is not None]
        if parts[0].strip() or [int(number) for number in parts[1::2]] != [cell.number for cell in shown]:
            raise SourceError("its cells cannot be separated after the edit; skipped")
        pieces, at = [], 0
        for cell, part in zip(shown, parts[2::2], strict=True):
            source = _restored(part.removesuffix("\n"), cell.source, f"{self._mark} magic")
            if source != cell.source:
                pieces += [self._json[at : cell.start], _spelled(source, self._json[cell.start : cell.end], self._json)]
                at = cell.end
        return self._start + "".join([*pieces, self._json[at:]]).encode()


def _is_python(document: dict[str, object]) -> bool:
    named = [_told(document, "language_info", "name"), _told(document, "kernelspec", "language")]
    return all(each is None or each.lower() in _LANGUAGES for each in named)


def _told(document: dict[str, object], part: str, key: str) -> str | None:
    """What the metadata say under two keys; None where they say nothing that is a text."""
    found: object = document
    for each in ("metadata", part, key):
        found = found.get(each) if isinstance(found, dict) else None
    return found if isinstance(found, str) else None


def _sources(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Number, place and source of each cell of code. ValueError where the file is no notebook."""
    cells = next((at for key, at in _members(text, _skip(text, 0)) if key == "cells"), None)
    if cells is None:
        raise ValueError("it has no cells; convert it to format 4")
    for number, cell in enumerate(_elements(text, cells), 1):
        found = {key: at for key, at in _members(text, cell) if key in {"cell_type", "source"}}
        if "source" in found and _DECODER.raw_decode(text, found["cell_type"])[0] == "code":
            value, end = _DECODER.raw_decode(text, found["source"])
            lines = [value] if isinstance(value, str) else value
            if not isinstance(lines, list) or not all(isinstance(each, str) for each in lines):
                raise ValueError(f"the source of cell {number} is no text")
            yield number, found["source"], end, "".join(lines)


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The keys of the object at an offset with the offsets of their values."""
    yield from ((str(key), value) for key, value in _entries(text, at, "{", "}"))


def _elements(text: str, at: int) -> Iterator[int]:
    yield from (value for _, value in _entries(text, at, "[", "]"))


def _entries(text: str, at: int, opening: str, closing: str) -> Iterator[tuple[object, int]]:
    if text[at : at + 1] != opening:
        raise ValueError(f"a `{opening}` is missing")
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        key: object = None
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield key, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _python(source: str, mark: str) -> str | None:
    """The source with a `pass` for each line that is for IPython; None for what is no Python even then."""
    if "\r" in source or "\f" in source:
        return None
    if _parses(source):
        return source
    first = next((line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if first.startswith("%%") and first.split()[0] not in _PYTHON_MAGICS:
        return None
    number = iter(range(len(source)))
    replaced = _MAGIC.sub(lambda found: f"{found[1]}pass  {mark} {next(number)}", source)
    return replaced if _parses(replaced) else None


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _restored(shown: str, source: str, mark: str) -> str:
    """The text of a cell with its lines for IPython back in place."""
    if _parses(source):
        return shown
    magics = [found[2] for found in _MAGIC.finditer(source)]
    restored, count = re.subn(rf"pass  {re.escape(mark)} (\d+)", lambda found: magics[int(found[1])], shown)
    if count != len(magics):
        raise SourceError("an IPython line would be lost; skipped")
    return restored


def _spelled(source: str, before: str, text: str) -> str:
    """The source as JSON, in the shape that the one before has: a string, or a list of lines with its indentation."""
    escape = text.isascii() and "\\u" in text
    if not before.startswith("["):
        return json.dumps(source, ensure_ascii=escape)
    known: dict[str, str] = {}
    for at in _elements(before, 0):
        value, end = _DECODER.raw_decode(before, at)
        known[value] = before[at:end]
    lines = [known.get(line) or json.dumps(line, ensure_ascii=escape) for line in source.splitlines(keepends=True)]
    opening = _SPACE.match(before, 1)
    around = before[1 : opening.end()] if opening is not None else ""
    closing = before[len(before.rstrip("]").rstrip()) : -1]
    between = f",{around}" if around else ", "
    return f"[{around}{between.join(lines)}{closing}]"
