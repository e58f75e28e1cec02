"""The bot's state between runs, stored in an HTML comment at the end of the pull request's body.

The forge is the only memory: any machine can run the bot next. Nothing secret is in it, and nobody needs to trust it: a
line that was changed costs at most an unwanted or a missing pull request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from graphmend_codemod.core.findings import Finding

_LINE = re.compile(r"^<!-- graphmend-mark (\{.*\}) -->\s*$", re.MULTILINE)
_LISTED = 400
NOTE = "<!-- graphmend-note {} -->"


@dataclass(frozen=True)
class Mark:
    """Which findings a pull request fixes, which title it was given, and whether the bot closed it.

    `each` identifies the findings one by one; it is empty when there are too many for a line. `all` identifies them
    together.
    """

    all: str
    each: frozenset[str] = frozenset()
    title: str = ""
    closed: bool = False

    def line(self) -> str:
        """The line for the body."""
        state = {"all": self.all, "each": sorted(self.each), "title": self.title, "closed": self.closed}
        return f"<!-- graphmend-mark {json.dumps(state, separators=(',', ':'))} -->"

    def covers(self, other: Mark) -> bool:
        """Whether every finding of `other` is among these."""
        return self.all == other.all or bool(other.each and other.each <= self.each)


def mark_of(findings: Iterable[Finding]) -> Mark:
    """The mark of some findings: by rule, file and function, since lines move."""
    keys = {f"{one.code}\0{one.path}\0{one.function}".encode("utf-8", "surrogateescape") for one in findings}
    each = frozenset(_digest(key)[:8] for key in keys)
    whole = _digest(b"\0\0".join(sorted(keys)))[:16]
    return Mark(whole, each if len(each) <= _LISTED else frozenset())


def title_digest(title: str) -> str:
    """What a mark remembers of a title."""
    return _digest(title.encode("utf-8", "surrogateescape"))[:8]


def with_mark(body: str, mark: Mark) -> str:
    """The body with another mark."""
    return f"{_LINE.sub('', body).rstrip()}\n\n{mark.line()}\n"


def read_mark(body: str) -> Mark | None:
    """The mark in a body; None if there is none that can be read."""
    found = _LINE.findall(body.replace("\r\n", "\n"))
    if not found:
        return None
    try:
        state = json.loads(found[-1])
        return Mark(str(state["all"]), frozenset(map(str, state["each"])), str(state["title"]), state["closed"] is True)
    except (ValueError, KeyError, TypeError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
