"""Foreign text made harmless: control characters and bidirectional overrides become visible, long text is cut."""

from __future__ import annotations

import html
import re

from graphmend_codemod.core.terminal import printable
from graphmend_codemod.reporting.markdown import code as code_span

_LINKS = re.compile(r"[@#](?=\w)|(?<=\w):(?=//)|(?<=www)\.|(?<=GH)-(?=\d)", re.IGNORECASE)
_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
_BAR = re.compile(r"(?<!\\)\|")
_BEGINS = re.compile(r"^(\d*)([-+=#.):])")


def shortened(text: str, limit: int) -> str:
    """The text, or its beginning with how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]} [{len(text) - limit:,} characters more]"


def diff_lines(diff: str, *, lines: int, width: int) -> list[str]:
    """A hunk as printable lines; at most `lines` of at most `width` characters, and then how much is missing."""
    found = [f"{line[:1]}{printable(line[1:])}" if line[:1] in "+- " else printable(line) for line in _split(diff)]
    shown = [shortened(line, width) for line in found[:lines]]
    if len(found) > lines:
        shown.append(f"[{len(found) - lines:,} lines more, in report.json]")
    return shown


def dedented(lines: list[str]) -> list[str]:
    """Lines of a hunk without the indentation that all of them share."""
    texts = [line[1:] for line in lines if line[:1] in "+- " and line[1:].strip()]
    common = min((len(text) - len(text.lstrip(" ")) for text in texts), default=0)
    return [f"{line[0]}{line[1 + common :]}" if line[:1] in ("+", "-", " ") else line for line in lines]


def code(text: str, limit: int = 300) -> str:
    """A code span; nothing for an empty text."""
    text = " ".join(printable(text).split())
    return code_span(shortened(text, limit)) if text else ""


def cell(markdown: str) -> str:
    """Markdown in a table, where a bar ends the cell, even within a code span."""
    return _BAR.sub(r"\\|", markdown)


def plain(text: str, limit: int = 1000) -> str:
    """Markdown that shows the text as it is: only code spans keep a meaning; nobody is mentioned and nothing linked.

    Backticks that are not clearly pairs are shown, since other text could hide behind them.
    """
    text = shortened(" ".join(printable(" ".join(text.split())).split()), limit)
    pieces = text.split("`")
    if len(pieces) % 2 == 0 or "``" in text:
        return _without_meaning(text)
    return "".join(code(piece, limit) if number % 2 else _without_meaning(piece) for number, piece in enumerate(pieces))


def tag_text(text: str, limit: int = 300) -> str:
    """Text between HTML tags in Markdown, where Markdown does not look."""
    return _broken_links(html.escape(shortened(printable(" ".join(text.split())), limit)))


def fenced(lines: list[str], language: str) -> str:
    """A fenced block that no line can end."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *lines, fence])


def _split(diff: str) -> list[str]:
    lines = diff.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _without_meaning(text: str) -> str:
    text = _SPECIAL.sub(r"\\\g<0>", html.escape(text, quote=False))
    return _broken_links(_BEGINS.sub(r"\g<1>\\\g<2>", text, count=1))


def _broken_links(text: str) -> str:
    return _LINKS.sub(lambda match: f"{match.group()}<!-- -->", text)
