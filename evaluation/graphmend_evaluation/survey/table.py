"""The survey as people and programs read it: a page of Markdown, and the rows as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphmend_evaluation.survey.row import Row


@dataclass(frozen=True)
class Pair:
    """One model type before and after; `after` is None where only the first arm was measured."""

    before: Row
    after: Row | None

    @property
    def compared(self) -> bool:
        """True when both arms were measured."""
        return self.before.ok and self.after is not None and self.after.ok

    @property
    def counted(self) -> bool:
        """True when both arms were compiled, too."""
        return self.compared and self.after is not None and self.after.counts is not None

    @property
    def problems(self) -> tuple[str, ...]:
        """What must not be: another eager result, a second arm that fails, a compiled model that is newly wrong."""
        if self.after is None or not self.before.ok:
            return ()
        if not self.after.ok:
            return (f"{self.after.status} after the migration: {self.after.message}",)
        found = [f"eager result changed: {each}" for each in self.after.differences]
        if self.after.compiled is not None and self.before.compiled is None:
            found.append(f"compiled: {self.after.compiled}")
        return tuple(found)


@dataclass(frozen=True)
class Totals:
    """What the page says first."""

    types: int
    measured: int
    broken: int
    breaks: int
    compared: int
    counted: int
    broken_counted: int
    breaks_counted: int
    broken_after: int
    breaks_after: int
    problems: int


def pairs(before: Iterable[Row], after: Iterable[Row]) -> tuple[Pair, ...]:
    """Rows of both arms, by type and in its order."""
    second = {row.type: row for row in after}
    return tuple(Pair(row, second.get(row.type)) for row in sorted(before, key=lambda row: row.type))


def totals(rows: Sequence[Pair]) -> Totals:
    """Counts over all rows. `compared` types ran in eager mode in both arms, `counted` ones also compiled."""
    measured = [each.before for each in rows if each.before.ok]
    counted = [each for each in rows if each.counted]
    after = [each.after for each in counted if each.after is not None]
    return Totals(
        types=len(rows),
        measured=len(measured),
        broken=sum(row.breaks > 0 for row in measured),
        breaks=sum(row.breaks for row in measured),
        compared=sum(each.compared for each in rows),
        counted=len(counted),
        broken_counted=sum(each.before.breaks > 0 for each in counted),
        breaks_counted=sum(each.before.breaks for each in counted),
        broken_after=sum(row.breaks > 0 for row in after),
        breaks_after=sum(row.breaks for row in after),
        problems=sum(bool(each.problems) for each in rows),
    )


def markdown(rows: Sequence[Pair], about: Mapping[str, str]) -> str:
    """The page."""
    sums = totals(rows)
    lines = ["# Graph breaks in the model types of transformers", "", *_answer(sums), "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in about.items()]
    lines += ["", *_method()]
    lines += _problems(rows)
    lines += ["", "## Types that break", "", *_broken(rows)]
    lines += ["", "## What still breaks them", "", *_sites(rows)]
    lines += ["", "## Types without a break", "", _names(each.before for each in rows if each.before.whole)]
    lines += ["", "## Types that were not measured", "", *_unmeasured(rows)]
    return "\n".join(lines) + "\n"


def as_json(rows: Sequence[Pair], about: Mapping[str, str]) -> dict[str, Any]:
    """All rows, with their sites and the recipes of their models."""
    return {
        "about": dict(about),
        "rows": [
            {"before": each.before.to_json(), "after": None if each.after is None else each.after.to_json()}
            for each in rows
        ],
    }


def _answer(sums: Totals) -> list[str]:
    before = f"{sums.broken} of {sums.measured} model types break, with {sums.breaks} breaks"
    if not sums.compared:
        return [f"**{before}.** Not compared with a migrated package."]
    problems = {0: "No type has a problem", 1: "1 type has a problem"}.get(
        sums.problems, f"{sums.problems} types have problems"
    )
    return [
        f"**Before: {before}. Of {sums.counted} types compiled in both arms, {sums.broken_counted} broke before with "
        f"{sums.breaks_counted} breaks, and {sums.broken_after} break after with {sums.breaks_after}. "
        f"{problems} among {sums.compared} compared in eager mode.**"
    ]


def _method() -> list[str]:
    return [
        "Each type of the auto mappings is measured with one class, the heaviest that can be made: a small instance "
        "with random weights, shrunk by general rules from its configuration class, called with inputs that are made "
        "from the signature of its forward; the line *mode* says with what else. Every type runs in a process of "
        "its own. Breaks are counted strictly, with capture flags off, over a first call; eager results are compared "
        "over up to three calls of different shapes, bit for bit, with log streams and states.",
    ]


def _problems(rows: Sequence[Pair]) -> list[str]:
    found = [f"- `{each.before.type}`: {problem}" for each in rows for problem in each.problems]
    return ["", "## Problems", "", *found] if found else []


def _broken(rows: Sequence[Pair]) -> list[str]:
    lines = ["| type | class | breaks before | after | sites before | after |", "|---|---|---:|---:|---:|---:|"]
    for each in rows:
        after = each.after if each.counted else None
        if not (each.before.breaks or (after is not None and after.breaks)):
            continue
        cells = [
            f"`{each.before.type}`",
            f"`{each.before.model_class}`",
            str(each.before.breaks),
            "" if after is None else str(after.breaks),
            str(_count(each.before)),
            "" if after is None else str(_count(after)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _sites(rows: Sequence[Pair]) -> list[str]:
    """Kinds of break with their places, of the last arm that there is."""
    last = [each.after if each.counted and each.after is not None else each.before for each in rows]
    places: dict[str, Counter[str]] = {}
    for row in last:
        for site in () if row.counts is None else row.counts.sites:
            where = f"`{site.path}:{site.line}` `{site.source}`"
            places.setdefault(site.kind, Counter())[where] += 1
    lines = []
    for kind, found in sorted(places.items(), key=lambda item: (-len(item[1]), item[0])):
        lines += [f"- {kind}: {len(found)} sites"]
        lines += [f"  - {where} ({count} types)" if count > 1 else f"  - {where}" for where, count in found.items()]
    return lines or ["Nothing."]


def _unmeasured(rows: Sequence[Pair]) -> list[str]:
    found = [each.before for each in rows if not each.before.ok]
    return [f"- `{row.type}`: {row.message}" for row in found] or ["None."]


def _names(rows: Iterable[Row]) -> str:
    return ", ".join(f"`{row.type}`" for row in rows) or "None."


def _count(row: Row) -> int:
    return 0 if row.counts is None else len(row.counts.sites)
