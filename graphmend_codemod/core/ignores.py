"""The comments that suppress findings: where they are in a file, and lines with more or fewer of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.source import SUPPRESSION, SUPPRESSION_MARK, SourceFile

if TYPE_CHECKING:
    from tokenize import TokenInfo

_COMMENT = re.compile(SUPPRESSION)
_MARKED = re.compile(rf"#\s*{SUPPRESSION_MARK}")


class Ignore(NamedTuple):
    """One comment. `codes` is empty where it covers every code, None where it cannot be understood.

    `line` is that of the comment, from 1; `first` and `last` are those of the logical line that it covers. `start` and
    `end` are its columns in characters, from 0.
    """

    line: int
    first: int
    last: int
    start: int
    end: int
    text: str
    codes: tuple[str, ...] | None

    def covers(self, line: int, code: str) -> bool:
        """Whether it suppresses a finding of `code` that starts on `line`."""
        return self.codes is not None and self.first <= line <= self.last and code.startswith(self.codes or ("",))


def ignores(source: SourceFile) -> Iterator[Ignore]:
    """The comments of a file, in order. SourceError if it has some and cannot be split into tokens."""
    if SUPPRESSION_MARK not in source.text:
        return
    for first, last, comments in source.logical_lines():
        for token in comments:
            known = {match.start(): match for match in _COMMENT.finditer(token.string)}
            for marked in _MARKED.finditer(token.string):
                match = known.get(marked.start())
                if match is not None and match[1]:
                    continue  # skip-file
                yield _ignore(token, first, last, match, marked)


def _ignore(token: TokenInfo, first: int, last: int, match: re.Match[str] | None, marked: re.Match[str]) -> Ignore:
    line, column = token.start
    codes = None
    if match is not None:
        codes = () if match[2] is None else tuple(filter(None, re.split(r"[\s,]+", match[2])))
    end = match.end() if match is not None else len(token.string)
    text = token.string[marked.start() : end].strip()
    return Ignore(line, first, last, column + marked.start(), column + end, text, codes)


def with_ignores(source: SourceFile, wanted: Mapping[int, Collection[str]]) -> SourceFile:
    """The file with comments that suppress the `wanted` codes on these lines. SourceError as `ignores`."""
    known = list(ignores(source))
    ends: dict[int, tuple[int, set[str]]] = {}  # by first line: last line and codes
    for first, last, _ in source.logical_lines():
        codes = {code for line, each in wanted.items() if first <= line <= last for code in each}
        if codes:
            ends[first] = (last, codes)
    lines = _split(source.text)
    for first, (last, codes) in ends.items():
        old = next((each for each in known if each.first == first and each.codes), None)
        if old is not None:
            every = ", ".join(sorted({*(old.codes or ()), *codes}))
            _replace(lines, old, f"# {SUPPRESSION_MARK} ignore[{every}]")
        else:
            body, newline = lines[last - 1]
            comment = f"# {SUPPRESSION_MARK} ignore[{', '.join(sorted(codes))}]"
            lines[last - 1] = (f"{body.rstrip()}  {comment}", newline)
    return source.with_text("".join(body + newline for body, newline in lines))


def without_codes(source: SourceFile, unused: Iterable[tuple[Ignore, Collection[str]]]) -> SourceFile:
    """The file without these codes of these comments; a comment that would have none left goes."""
    lines = _split(source.text)
    for each, codes in sorted(unused, key=lambda pair: (pair[0].line, pair[0].start), reverse=True):
        left = [code for code in each.codes or () if code not in codes]
        _replace(lines, each, f"# {SUPPRESSION_MARK} ignore[{', '.join(left)}]" if left else "")
    return source.with_text("".join(body + newline for body, newline in lines))


def _split(text: str) -> list[tuple[str, str]]:
    """Lines as (text, newline)."""
    parts = re.split(r"(\r\n?|\n)", text)
    return list(zip(parts[::2], [*parts[1::2], ""], strict=True))


def _replace(lines: list[tuple[str, str]], old: Ignore, new: str) -> None:
    body, newline = lines[old.line - 1]
    after = body[old.end :]
    before = body[: old.start] if new or after.strip() else body[: old.start].rstrip()
    lines[old.line - 1] = (before + new + (after if new else after.lstrip() if after.strip() else ""), newline)
