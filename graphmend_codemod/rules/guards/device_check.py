"""The text of a check on the device, and of its message in pieces that fit."""

from __future__ import annotations

import re
from typing import NamedTuple

from graphmend_codemod.rules.framework.site import Site


class DeviceCheck(NamedTuple):
    """The call that checks, whose text depends on how deep it stands."""

    site: Site
    text: str
    message: str
    name: str | None

    def at(self, deeper: int) -> str:
        """The text `deeper` levels below the guard."""
        site = self.site
        start = f"{site.torch}._assert_async("
        if self.name is not None:
            return site.call(start, [self.text, self.name], deeper=deeper)
        room = site.line_limit - site.indentation(deeper + 1) - len('"",')
        literal = _quoted(self.message)
        if len(literal) - len('""') > room:
            literal = ("\n" + "    " * (deeper + 1)).join(map(_quoted, _pieces_of(self.message, room)))
        return site.call(start, [self.text, literal], deeper=deeper)


def _pieces_of(text: str, room: int) -> list[str]:
    """The text in pieces, cut behind spaces, that fit into a line each."""
    pieces = [""]
    for word in re.findall(r"\S*\s+|\S+$", text):
        if pieces[-1] and len(_quoted(pieces[-1] + word)) - len('""') > room:
            pieces.append("")
        pieces[-1] += word
    return pieces


def _quoted(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"'
