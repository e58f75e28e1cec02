"""Two runs of one program, before and after: what is gone, what is left, what is new."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.reporting.report import plural
from graphmend_codemod.trace.document import Site, Trace
from graphmend_codemod.trace.text import seconds


@dataclass(frozen=True)
class Comparison:
    """A run `before` and the same `after`. Sites are known again by file, function, kind and statement."""

    before: Trace
    after: Trace

    @property
    def gone(self) -> tuple[Site, ...]:
        """Sites that do not break any more."""
        left = {site.id for site in self.after.sites}
        return tuple(site for site in self.before.sites if site.id not in left)

    @property
    def new(self) -> tuple[Site, ...]:
        """Sites that did not break before: often those that an earlier break hid."""
        known = {site.id for site in self.before.sites}
        return tuple(site for site in self.after.sites if site.id not in known)

    def lines(self) -> Iterator[str]:
        """One line of numbers, then the new sites."""
        yield summary(self)
        gone = {site.shown.path for site in self.gone}
        for site in self.new:
            place = site.shown
            kind = f"{site.gb_id} {site.kind}".strip()
            hidden = " (a break that is gone may have hidden it)" if place.path in gone else ""
            yield f"  new: {place.path}:{place.line} in {place.function}: {kind}{hidden}"


def summary(compared: Comparison) -> str:
    """`41 graph breaks -> 3, compiling 106.0 s -> 80.0 s`, and what became of the sites."""
    before, after = compared.before.totals, compared.after.totals
    parts = [
        f"{plural(before.events, 'graph break')} -> {after.events}",
        f"{plural(before.sites, 'site')} -> {after.sites}",
        f"{plural(before.compilations, 'compilation')} -> {after.compilations}",
        f"compiling {seconds(before.seconds)} -> {seconds(after.seconds)}",
    ]
    if before.wall and after.wall:
        parts.append(f"the run {seconds(before.wall)} -> {seconds(after.wall)}")
    return f"{', '.join(parts)} ({len(compared.gone)} gone, {len(compared.new)} new)."
