"""The table of both halves, as people and programs read it."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend_evaluation.machine import this_machine
from graphmend_evaluation.others.result import Result, own_sites


@dataclass(frozen=True)
class Pair:
    """One model before and after; `silent` are break events before on a line without a finding. One that is not
    `recorded` though its fixes need that has no fixes."""

    before: Result
    after: Result | None
    silent: int | None
    recorded: bool = True

    @property
    def compared(self) -> bool:
        """True when both arms were measured."""
        return self.after is not None and self.after.row.ok

    @property
    def problems(self) -> tuple[str, ...]:
        """What must not be: another eager result or gradient, a second arm that fails, a newly wrong compiled one."""
        if self.after is None:
            return ()
        if not self.after.row.ok:
            return (f"{self.after.row.status} after the fixes",)
        found = [f"eager result changed: {each}" for each in self.after.row.differences]
        if self.after.row.compiled is not None and self.before.row.compiled is None:
            found.append(f"compiled: {self.after.row.compiled}")
        return tuple(found)


def totals(pairs: Sequence[Pair]) -> list[str]:
    """One line a half."""
    return [_totals(name, [pair for pair in pairs if pair.before.half == name]) for name in ("study", "exam")]


def _totals(name: str, pairs: Sequence[Pair]) -> str:
    packages = len({pair.before.package for pair in pairs})
    events = sum(pair.before.row.breaks for pair in pairs)
    text = f"{name}: {len(pairs)} models of {packages} packages that break, {events} break events"
    done = [pair for pair in pairs if pair.compared]
    if not done:
        return text + "; not compared"
    was = sum(pair.before.row.breaks for pair in done)
    now = sum(pair.after.row.breaks for pair in done if pair.after is not None)
    own = sum(pair.before.own_events for pair in done)
    whole = sum(pair.after.row.whole for pair in done if pair.after is not None)
    opaque = sum(_opaque(pair.after) > 0 and pair.after.row.whole for pair in done if pair.after is not None)
    graphs = (sum(_graphs(pair.before) for pair in done), sum(_graphs(pair.after) for pair in done))
    operators = sum(_opaque(pair.after) for pair in done if pair.after is not None)
    silent = sum(pair.silent or 0 for pair in done)
    missed = sum(not pair.recorded for pair in done)
    return (
        f"{text}; {len(done)} compared: events {was} -> {now}, graphs {graphs[0]} -> {graphs[1]}, one graph after: "
        f"{whole} ({opaque} with opaque operators), opaque operators {operators}, silent events {silent} of {own}, "
        f"models with a problem {sum(bool(pair.problems) for pair in pairs)}"
        + (f"; {missed} not recorded, counted as before" if missed else "")
    )


def markdown(pairs: Sequence[Pair], about: Mapping[str, str]) -> str:
    """The page."""
    lines = ["# Graph breaks in models of other packages", ""]
    lines += [f"- **{line.partition(':')[0]}**:{line.partition(':')[2]}" for line in totals(pairs)]
    lines += ["", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in about.items())]
    for name in ("study", "exam"):
        mine = [pair for pair in pairs if pair.before.half == name]
        lines += ["", f"## {name.capitalize()}", "", *_table(mine)]
    problems = [f"- `{pair.before.key}`: {each}" for pair in pairs for each in pair.problems]
    lines += ["", "## Problems", "", *(problems or ["None."])]
    lines += ["", "## Where the study half breaks", "", *_sites(pair for pair in pairs if pair.before.half == "study")]
    return "\n".join(lines) + "\n"


def _table(pairs: Sequence[Pair]) -> list[str]:
    lines = ["| model | events before | after | sites before | after | graphs before | after | silent | eager |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---|"]
    for pair in pairs:
        after = pair.after if pair.compared else None
        cells = [f"`{pair.before.key}`"]
        for number in (_events, _count, _graphs):
            cells += [str(number(pair.before)), "" if after is None else str(number(after))]
        silent = "" if pair.silent is None else str(pair.silent)
        equal = "" if after is None else ("differs" if after.row.differences else "equal")
        equal = equal if pair.recorded else "not recorded"
        lines.append("| " + " | ".join([*cells, silent, equal]) + " |")
    return lines


def _sites(pairs: Iterable[Pair]) -> list[str]:
    lines = []
    for pair in pairs:
        last = pair.after if pair.compared and pair.after is not None else pair.before
        lines += [
            f"- `{pair.before.key}` `{site.path}:{site.line}` `{site.source}`: {site.kind} ({site.events})"
            for site in own_sites(last.row)
        ]
    return lines or ["Nowhere."]


def _events(each: Result) -> int:
    return each.row.breaks


def _graphs(each: Result | None) -> int:
    return 0 if each is None or each.row.counts is None else each.row.counts.graphs


def _count(each: Result) -> int:
    return 0 if each.row.counts is None else len(each.row.counts.sites)


def _opaque(each: Result) -> int:
    return 0 if each.row.counts is None else each.row.counts.opaque_operators


def about_this_run(packages: int, built: int, fixes: str) -> dict[str, str]:
    """Versions, machine, date, how much was tried, and what fixed it."""
    machine = this_machine()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "python": sys.version.split()[0],
        "torch": importlib.metadata.version("torch"),
        "packages tried": str(packages),
        "models tried": str(built),
        "fixes": fixes,
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.system}",
    }


def write(pairs: Sequence[Pair], about: Mapping[str, str], folder: Path, arm: str = "") -> Path:
    """Write the page and the rows into dated files. The page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{about['date'].partition(' ')[0]}{arm}.md"
    target.write_text(markdown(pairs, about), encoding="utf-8")
    data = {"about": dict(about), "totals": totals(pairs), "models": [_as_json(pair) for pair in pairs]}
    text = json.dumps(data, indent=1)
    target.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return target


def _as_json(pair: Pair) -> dict[str, Any]:
    return {
        "model": pair.before.key,
        "half": pair.before.half,
        "silent": pair.silent,
        **({} if pair.recorded else {"recorded": False}),
        "problems": list(pair.problems),
        "before": _arm(pair.before),
        "after": None if pair.after is None else _arm(pair.after),
    }


def _arm(each: Result) -> dict[str, Any]:
    """Numbers of one arm; of the study half also the places."""
    found: dict[str, Any] = {
        "status": each.row.status,
        "events": each.row.breaks,
        "own events": each.own_events,
        "sites": _count(each),
        "graphs": _graphs(each),
        "opaque operators": _opaque(each),
        "eager equal": not each.row.differences,
        "compiled": each.row.compiled,
    }
    if each.half == "study":
        found["own sites"] = [f"{site.path}:{site.line} {site.gb_id} x{site.events}" for site in own_sites(each.row)]
    return found
