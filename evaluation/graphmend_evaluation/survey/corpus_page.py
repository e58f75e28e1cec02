"""The page of listed rows: as installed, with safe fixes, with opaque ones, with unsafe ones or recorded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphmend_evaluation.survey.corpus_recorded import Recorded
from graphmend_evaluation.survey.row import Row

_UNSAFE = (
    "The arm with unsafe fixes has those as well, and is measured where a graph still breaks: a layer that a random "
    "number would skip runs, and its result is selected (GM112)."
)
_RECORDED = (
    "The arm with recorded runs is made for each row alone where a graph still breaks: `graphmend trace --calls` of "
    "its call twice, and of the call with twice as many rows where the model takes that, then "
    "`graphmend fix --opaque --trace` of the package as installed."
)
_TITLES = {"recorded": "recorded runs", "unsafe": "unsafe fixes"}


@dataclass(frozen=True)
class Measured:
    """One row of the list. An arm is measured where the one before it breaks; None stands for an arm that was not."""

    name: str
    base: Row | None
    safe: Row | None
    opaque: Row | None
    unsafe: Row | None = None
    recorded: Recorded | None = None

    @property
    def breaks(self) -> bool:
        """True when it breaks as installed."""
        return self.base is not None and self.base.ok and self.base.breaks > 0

    @property
    def whole_safe(self) -> bool:
        """True when safe fixes make one graph of it."""
        return self.safe is not None and self.safe.whole

    @property
    def whole_opaque(self) -> bool:
        """True when safe fixes do, or opaque ones."""
        return self.whole_safe or (self.opaque is not None and self.opaque.whole)

    @property
    def whole_unsafe(self) -> bool:
        """True when unsafe fixes do, beside opaque ones."""
        return self.whole_opaque or (self.unsafe is not None and self.unsafe.whole)

    @property
    def whole_recorded(self) -> bool:
        """True when what recorded runs of the row know does, beside opaque fixes."""
        return self.whole_opaque or (self.row_recorded is not None and self.row_recorded.whole)

    @property
    def row_recorded(self) -> Row | None:
        """The row behind the recorded runs."""
        return None if self.recorded is None else self.recorded.row

    @property
    def arms(self) -> tuple[tuple[str, Row | None], ...]:
        """The fixed arms by name."""
        unsafe = ("unsafe", self.unsafe), ("recorded", self.row_recorded)
        return ("safe", self.safe), ("opaque", self.opaque), *unsafe

    @property
    def seconds(self) -> float:
        """Of all arms: making the model, running it in eager mode, compiling, comparing; recording it and fixing."""
        measured = sum(row.seconds for row in (self.base, *(row for _, row in self.arms)) if row is not None)
        return measured + (0.0 if self.recorded is None else self.recorded.seconds)

    @property
    def problems(self) -> tuple[str, ...]:
        """What must not be, as `table.Pair.problems` has it, of the fixed arms."""
        found: list[str] = []
        for arm, row in self.arms:
            if row is None or self.base is None:
                continue
            if not row.ok:
                found.append(f"{arm}: {row.status}: {row.message}")
            found += [f"{arm}: eager result changed: {each}" for each in row.differences]
            if row.compiled is not None and self.base.compiled is None:
                found.append(f"{arm}: compiled: {row.compiled}")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """As what `json.dumps` takes."""
        arms = (("base", self.base), *self.arms)
        rows = {name: None if row is None else row.to_json() for name, row in arms}
        known = None if self.recorded is None else {**self.recorded._asdict(), "row": rows["recorded"]}
        return {"row": self.name, **rows, "recorded": known}


def answer(rows: Sequence[Measured]) -> str:
    """The result in a few sentences."""
    made = [each for each in rows if each.base is not None and each.base.ok]
    broken = [each for each in made if each.breaks]
    recorded = _are_recorded(rows)
    names = ("whole_safe", "whole_opaque", "whole_recorded" if recorded else "whole_unsafe")
    safe, opaque, last = (sum(getattr(each, name) for each in broken) for name in names)
    how = "with what recorded runs of each row tell" if recorded else "with unsafe ones too"
    compared = [each for each in broken if each.safe is not None and each.safe.ok]
    changed = sum(bool(row.differences) for each in broken for _, row in each.arms if row is not None)
    seconds = sorted(each.seconds for each in broken)
    typical = f"; {seconds[len(seconds) // 2]:.0f} s a row for all arms (median)" if seconds else ""
    return (
        f"{len(rows)} rows tried, {len(made)} could be made small and called, {len(broken)} of these break here. "
        f"Of the {len(broken)}: {safe}{_share(safe, len(broken))} are one graph with safe fixes, {opaque}"
        f"{_share(opaque, len(broken))} with opaque ones as well, {last}"
        f"{_share(last, len(broken))} {how}. Eager results, and gradients in training mode, "
        f"differ in {changed} of {len(compared)} compared{typical}."
    )


def _share(part: int, whole: int) -> str:
    return f" ({part / whole:.0%})" if whole else ""


def markdown(rows: Sequence[Measured], about: Mapping[str, str]) -> str:
    """The page."""
    return "\n".join(_lines(rows, about)) + "\n"


def _are_recorded(rows: Sequence[Measured]) -> bool:
    return any(each.recorded is not None for each in rows)


def _lines(rows: Sequence[Measured], about: Mapping[str, str]) -> Iterator[str]:
    yield from ("# The OSS Model Graph Break Corpus, made small", "", f"**{answer(rows)}**", "", "| | |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in about.items())
    yield ""
    yield (
        "The corpus lists classes and modes that break at the sizes of its own configurations and with its own inputs. "
        "Here each class is made small by the survey's general rules and called with inputs made of its signature: "
        "some rows do not break here, and some break elsewhere. Breaks are counted strictly, capture flags off, "
        "nothing set. The arm with opaque fixes is measured where safe ones leave a break; in its graphs are operators "
        f"that the compiler cannot look into. {_RECORDED if _are_recorded(rows) else _UNSAFE}"
    )
    problems = [f"- `{each.name}`: {problem}" for each in rows for problem in each.problems]
    if problems:
        yield from ("", "## Problems", "", *problems)
    last = "recorded" if _are_recorded(rows) else "unsafe"
    yield from ("", "## Rows that break", "", f"| row | breaks | safe | opaque | {last} | seconds |")
    yield "|---|---:|---:|---:|---:|---:|"
    for each in sorted((row for row in rows if row.breaks), key=lambda row: row.name):
        arms = dict(each.arms)
        cells = [*map(_cell, (each.base, each.safe, each.opaque, arms[last])), f"{each.seconds:.0f}"]
        yield f"| `{each.name.replace(':', '` ')} | " + " | ".join(cells) + " |"
    if last == "recorded":
        unknown = [each for each in rows if each.recorded is not None and each.recorded.row is None]
        yield from ("", "## Rows that could not be recorded", "")
        yield from [f"- `{each.name}`: {each.recorded.message}" for each in unknown if each.recorded] or ["None."]
    for arm, titled in (("safe", "safe fixes"), ("opaque", "opaque fixes"), (last, _TITLES[last])):
        yield from ("", f"## What breaks after {titled}", "", *_sites(dict(each.arms)[arm] for each in rows))
    whole = [each.name for each in rows if each.base is not None and each.base.whole]
    yield from ("", "## Rows that do not break here", "", ", ".join(f"`{name}`" for name in sorted(whole)) or "None.")
    yield from ("", "## Rows that were not made", "")
    missing = [f"- `{each.name}`: {each.base.message}" for each in rows if each.base is not None and not each.base.ok]
    yield from missing or ["None."]


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return str(row.breaks) if row.ok else row.status


def _sites(rows: Iterator[Row | None]) -> list[str]:
    found: Counter[str] = Counter()
    for row in rows:
        for site in () if row is None or row.counts is None else row.counts.sites:
            found[f"{site.kind}: `{site.path}:{site.line}` `{site.source}`"] += 1
    return [f"- {count} rows: {text}" for text, count in found.most_common()] or ["Nothing."]
