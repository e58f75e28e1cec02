"""Parse torch's graph-break messages: kind, reason, hints, page, and the user's stack with columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

GB_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"
_FRAME = re.compile(r'^\s*File "(?P<path>.+)", line (?P<line>\d+), in (?P<function>.+)$')
_STACK_BEGINS = re.compile(
    r"^(User code traceback:|The graph break occurred in the following user code:|from user code:)"
)
_LINK = re.compile(r"/gb/gb(\d+)\.html")
_CARETS = re.compile(r"^\s*[\^~]+\s*$")
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)$")
_SKIPS = ("cannot properly resume", "will skip tracing the frame", "torch.compile intentionally decided to fall back")
_BOILERPLATE = ("Graph break in user code", "Graph Break Reason:", "Graph break:", "torch.compile will skip")


class TextFrame(NamedTuple):
    """A frame of the user's stack. `code` is its line without indentation; the columns count in that, from 0."""

    path: str
    line: int
    function: str
    code: str = ""
    column: int | None = None
    end_column: int | None = None


class BreakText(NamedTuple):
    """A message, taken apart. `gb_id` is `GB0170`, or empty where torch gives none."""

    gb_id: str
    kind: str
    reason: str
    hints: tuple[str, ...]
    frames: tuple[TextFrame, ...]
    skips: bool


def parse(text: str) -> BreakText:
    """The parts of one message. Nothing is raised for what reads otherwise: parts are then empty."""
    lines = text.splitlines()
    link = _LINK.search(text)
    kind = _kind(lines)
    explanation = next((line.strip() for line in lines if line.strip().startswith("Explanation:")), "")
    hints = [line.strip().removeprefix("Hint:").strip() for line in lines if line.strip().startswith("Hint:")]
    reason = explanation.removeprefix("Explanation:").strip() or kind
    return BreakText(
        gb_id=f"GB{link[1]}" if link else "",
        kind=kind,
        reason=reason,
        hints=tuple(dict.fromkeys(hints)),
        frames=tuple(_frames(lines)),
        skips=any(words in text for words in _SKIPS),
    )


def page(gb_id: str) -> str:
    """The page that torch has about a kind of break; empty without an id."""
    return GB_PAGE.format(gb_id.lower()) if gb_id else ""


def plain_function(name: str) -> str:
    """A function's own name, of that of a part of it that Dynamo made."""
    match = _RESUME.match(name)
    return match["function"] if match else name


def resumes_at(name: str) -> tuple[str, int] | None:
    """Function and line behind which a part of a function goes on that Dynamo made; None for a whole function."""
    match = _RESUME.match(name)
    return (match["function"], int(match["line"])) if match else None


def _kind(lines: Sequence[str]) -> str:
    """The line above the explanation, which is where torch names the kind; else the first that says something."""
    above = ""
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("Explanation:") and above:
            return _bare(above)
        above = stripped or above
    return next(
        (_bare(line.strip()) for line in lines if line.strip() and not line.strip().startswith(_BOILERPLATE)), ""
    )


def _bare(line: str) -> str:
    line = line.removeprefix("Graph Break Reason:").strip()
    return re.sub(r"^torch\._dynamo\.exc\.\w+: ", "", line)


def _frames(lines: Sequence[str]) -> Iterable[TextFrame]:
    inside = False
    for number, line in enumerate(lines):
        if _STACK_BEGINS.match(line.strip()):
            inside = True
        elif inside and line.startswith("Traceback (most recent call last)"):
            return
        elif inside and (match := _FRAME.match(line)):
            frame = TextFrame(match["path"], int(match["line"]), match["function"])
            yield _with_code(frame, lines[number + 1 : number + 3])


def _with_code(frame: TextFrame, below: Sequence[str]) -> TextFrame:
    if not below or _FRAME.match(below[0]) or not below[0].startswith("    "):
        return frame
    code = below[0].strip()
    frame = frame._replace(code=code)
    if len(below) < 2 or not _CARETS.match(below[1]):
        return frame
    indent = len(below[0]) - len(below[0].lstrip())
    start = len(below[1]) - len(below[1].lstrip())
    return frame._replace(column=start - indent, end_column=len(below[1].rstrip()) - indent)
