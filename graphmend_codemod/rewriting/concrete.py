"""An independent proof of an edit over concrete syntax trees, in which comments, blank lines and quotes count.

`verify` compares abstract trees, knows where the rewriter put its changes, and does not see comments. This proof uses
another parser, libcst's, and knows of an edit only which lines of the old text it replaces:

- statements that no edit touches are deeply equal before and after, in their order, with nothing new between them but
  imports and definitions at the top of the module or of a class;
- a statement around an edit keeps its header, its comments and the ends of its blocks;
- where an edit says that the author's code stays beside a compile path, each of its words stays, in order, as spelled;
- no comment is lost.

libcst takes some fifty times as long as `ast`, so top-level statements with equal text are left out before anything
is parsed, and the commit hook does without: this is for branches and pull requests that people review.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import libcst as cst

from graphmend_codemod.core.findings import Edit, EditForm
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.rewriting.concrete_nodes import comments, holds, words
from graphmend_codemod.rewriting.concrete_statements import Comparison, Differs, Group, Touched
from graphmend_codemod.rewriting.text import NEWLINE, RewriteError

_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")
# Statements before and behind what is parsed: so each comment and blank line belongs to a statement, and the first
# indentation and newline, which libcst takes for the usual ones, are the same in both texts.
_FIRST = ("if 0:", "pass")
_LAST = "pass"


class _Text(NamedTuple):
    """Top-level statements of a file: their text, and the line in the file of each line of it."""

    module: cst.Module
    lines: tuple[int, ...]


def verify_concrete(before: SourceFile, after: SourceFile, edits: Sequence[Edit]) -> None:
    """RewriteError unless `after` is `before` with these edits and nothing else.

    Also raised for a text that libcst cannot parse: what cannot be verified is not written.
    """
    old, new = _segments(before), _segments(after)
    matcher = SequenceMatcher(None, [before.text[a:b] for a, b in old], [after.text[a:b] for a, b in new], False)
    changed = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    if not changed:
        return
    try:
        groups = _groups(
            _parsed(before, before, [old[number] for _, first, last, _, _ in changed for number in range(first, last)]),
            _parsed(after, before, [new[number] for _, _, _, first, last in changed for number in range(first, last)]),
            edits,
        )
    except RewriteError:  # of statements with one text, the edited one may have been taken for another that is the same
        groups = _groups(_parsed(before, before, old), _parsed(after, before, new), edits)
    _demand_comments(groups)
    _demand_words(groups)


def _groups(old: _Text, new: _Text, edits: Sequence[Edit]) -> list[Group]:
    """What was replaced and what is new. RewriteError where anything else is not as it was."""
    imports = [name for edit in edits for name in edit.imports]
    names = [helper.name for edit in edits for helper in edit.helpers]
    try:
        return Comparison(old.module, new.module, _touched(edits, old.lines), imports, names).modules()
    except Differs as error:
        line = max(1, old.lines[min(error.line, len(old.lines)) - 1])
        raise RewriteError(f"{error} near line {line}, outside of what the edit replaces") from error
    except RecursionError as error:
        raise RewriteError("its statements are nested too deeply for the concrete tree to be compared") from error


def _touched(edits: Sequence[Edit], lines: Sequence[int]) -> list[Touched]:
    """The lines of the parsed text that edits replace."""
    found = []
    for edit in edits:
        for span, _ in edit.replacements:
            empty = span[:2] == span[2:]
            first, last = bisect_left(lines, span.start_line) + 1, bisect_right(lines, span.end_line)
            if first <= last or empty:
                found.append(Touched(first, max(first, last), empty, edit.form is EditForm.BESIDE))
    return found


def _segments(source: SourceFile) -> list[tuple[int, int]]:
    """Offsets of each top-level statement with what stands above it; the last begins where no statement follows."""
    try:
        body = source.parse().body
    except SourceError as error:
        raise RewriteError(f"the result {error}") from error
    starts = (*source.line_starts, len(source.text))
    cuts = [0]
    for this, following in zip(body, [*body[1:], None], strict=True):
        end = this.end_lineno or this.lineno
        if following is None or following.lineno > end:
            cuts.append(starts[min(end, len(starts) - 1)])
    return [(a, b) for a, b in zip(cuts, [*cuts[1:], len(source.text)], strict=True) if a < b]


def _parsed(source: SourceFile, like: SourceFile, segments: Sequence[tuple[int, int]]) -> _Text:
    """The segments as one module, in which indentation and newline that `like` has are the usual ones."""
    newline = like.newline
    text = "".join(source.text[a:b] for a, b in segments)
    if _CARRIAGE_RETURN.search(like.text):  # alone it ends a line to Python, and is misread by libcst
        text, newline = NEWLINE.sub("\n", text), "\n"
    if text and not text.endswith(("\n", "\r")):
        text += newline
    lines = [0] * len(_FIRST)
    for a, b in segments:
        first = source.line_at(a)
        lines += range(first, source.line_at(max(a, b - 1)) + 1)
    try:
        module = cst.parse_module(f"{_FIRST[0]}{newline}{like.indent}{_FIRST[1]}{newline}{text}{_LAST}{newline}")
    except (cst.ParserSyntaxError, cst.CSTValidationError, UnicodeError, RecursionError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise RewriteError(f"libcst cannot parse it, so the edit cannot be verified: {said}") from error
    return _Text(module, (*lines, lines[-1] + 1))


def _demand_comments(groups: Sequence[Group]) -> None:
    lost = Counter(each for group in groups for each in comments(group.old))
    lost -= Counter(each for group in groups for each in comments(group.new))
    if lost:
        raise RewriteError(f"the comment `{next(iter(lost))}` would be lost")


def _demand_words(groups: Sequence[Group]) -> None:
    """RewriteError unless the code beside each compile path is the author's, word for word.

    Statements that moved into a new function are looked for in the new definitions.
    """
    added = [words(group.new) for group in groups if not group.old]
    for group in groups:
        if not group.beside:
            continue
        wanted = words(group.old)
        if not any(holds(given, wanted) for given in (words(group.new), *added)):
            shown = " ".join(wanted[:6])
            raise RewriteError(f"the author's code `{shown} ...` would be respelled")
