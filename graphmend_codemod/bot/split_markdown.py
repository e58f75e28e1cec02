"""A long report cut into parts that a forge takes, each of which reads by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_OPENS, _CLOSES = re.compile(r"<details\b"), re.compile(r"</details>")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULER = re.compile(r"\|[\s:|-]+\|\s*$")
_AGAIN = "<details open><summary>continued</summary>"
_END = "\n</details>\n"


@dataclass
class _Open:
    """What a cut after the last line would leave open: folded parts, a code fence, a table with its head."""

    details: int = 0
    fence: str = ""
    fence_line: str = ""
    table: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        found = _FENCE.match(line)
        if self.fence:
            if found and found[1].startswith(self.fence) and line.strip() == found[1]:
                self.fence = self.fence_line = ""
            return
        if found:
            self.fence, self.fence_line = found[1], line
        self.details = max(0, self.details + len(_OPENS.findall(line)) - len(_CLOSES.findall(line)))
        if not line.startswith("|"):
            self.table = []
        elif len(self.table) < 2:
            self.table.append(line)

    @property
    def closing(self) -> str:
        fence = f"{self.fence}\n" if self.fence else ""
        return fence + _END * self.details

    @property
    def opening(self) -> str:
        details = f"{_AGAIN}\n\n" * self.details
        fence = f"{self.fence_line}\n" if self.fence else ""
        head = (
            "".join(f"{line}\n" for line in self.table) if len(self.table) == 2 and _RULER.match(self.table[1]) else ""
        )
        return details + fence + head


def split(text: str, limit: int) -> tuple[str, ...]:
    """Cut Markdown between lines into parts of at most `limit` bytes of UTF-8.

    What is open at a cut (a folded part, a code fence, a table) is closed there and opened again in the next part, as
    many folded parts as take half of it at most. Of a line that alone is longer, what does not fit is left out.
    """
    deepest = limit // 2 // len(f"{_AGAIN}\n\n{_END}")
    parts: list[str] = []
    state, current, empty = _Open(), "", True
    for line in text.splitlines():
        if not empty and _size(f"{current}{line}\n{_after(state, line)}") > limit:
            parts.append(current + state.closing)
            state.details = min(state.details, deepest)
            current, empty = state.opening, True
        # A blank line at the top of a part says nothing.
        if empty and not line.strip():
            continue
        room = limit - _size(f"{current}\n{_after(state, line)}")
        kept = _cut(line, room)
        current += f"{kept}\n"
        state.take(kept)
        empty = False
    return (*parts, current) if not empty else tuple(parts)


def _after(state: _Open, line: str) -> str:
    """What would have to be closed after one more line."""
    ahead = _Open(state.details, state.fence, state.fence_line, list(state.table))
    ahead.take(line)
    return max(state.closing, ahead.closing, key=len)


def _cut(line: str, room: int) -> str:
    data = line.encode("utf-8")
    return line if len(data) <= room else data[: max(0, room - 3)].decode("utf-8", "ignore") + "..."


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
