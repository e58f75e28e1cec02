"""Earlier runs over the same repositories: one line of sums each, a chart, and all rows as CSV."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphmend_codemod.fleet.results import Row

_FIELDS = (
    "finished", "name", "location", "action", "status", "sites", "fixable", "fixed", "breaks_before", "breaks_after",
    "pull_request", "seconds", "memory", "disk", "error",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 30
_HEIGHT, _BAR, _GAP = 90, 26, 10


class Run(NamedTuple):
    """Sums over the rows of one run; `finished` is when its last row was."""

    action: str
    finished: str
    repositories: int
    failed: int
    sites: int
    fixable: int
    fixed: int


def runs(rows: Iterable[tuple[str, Row]]) -> list[Run]:
    """The runs that (finished, row) pairs come from, the oldest first.

    A repository has one row a run, so a row for one that is there already begins the next run of its action.
    """
    batches: list[list[tuple[str, Row]]] = []
    current: dict[str, dict[str, list[tuple[str, Row]]]] = {}
    for finished, row in rows:
        seen = current.get(row.action)
        if seen is None or row.location in seen:
            batches.append([])
            seen = current[row.action] = {}
            seen[""] = batches[-1]
        seen[""].append((finished, row))
        seen[row.location] = seen[""]
    return [_sums(batch) for batch in batches]


def _sums(batch: Sequence[tuple[str, Row]]) -> Run:
    rows = [row for _, row in batch]
    return Run(
        action=rows[0].action,
        finished=max(finished for finished, _ in batch),
        repositories=len(rows),
        failed=sum(row.failed for row in rows),
        sites=sum(row.sites for row in rows),
        fixable=sum(row.fixable for row in rows),
        fixed=sum(row.fixed for row in rows),
    )


def burndown(runs: Sequence[Run]) -> str:
    """A chart of the sites left after each run, and a table, as HTML; empty for fewer than two runs of an action."""
    parts = []
    for action in dict.fromkeys(run.action for run in runs):
        same = [run for run in runs if run.action == action][-_SHOWN:]
        if len(same) < 2:
            continue
        heads = "".join(f"<th class=n>{name}" for name in (*Run._fields[2:], "left"))
        body = "".join(
            f"<tr><td>{html.escape(run.finished)}"
            + "".join(f"<td class=n>{value}" for value in (*run[2:], run.sites - run.fixed))
            for run in same
        )
        parts.append(
            f"<h2>Runs of {html.escape(action)}</h2>{_chart(same)}<div class=wide><table class=sortable><thead><tr>"
            f"<th>finished{heads}</thead><tbody>{body}</tbody></table></div>"
        )
    return "".join(parts)


def _chart(every: Sequence[Run]) -> str:
    most = max(1, *(run.sites - run.fixed for run in every))
    width = len(every) * (_BAR + _GAP)
    bars = []
    for number, run in enumerate(every):
        left = run.sites - run.fixed
        height = max(1, round(left / most * _HEIGHT))
        x, y = number * (_BAR + _GAP), _HEIGHT - height + 14
        bars.append(
            f"<rect class=bar x={x} y={y} width={_BAR} height={height}><title>{html.escape(run.finished)}: {left}"
            f"</title></rect><text class=barlabel x={x + _BAR // 2} y={y - 3} text-anchor=middle>{left}</text>"
        )
    label = f"Sites left after each run: {', '.join(str(run.sites - run.fixed) for run in every)}"
    return f'<svg role=img aria-label="{label}" width={width} height={_HEIGHT + 16}>{"".join(bars)}</svg>'


def as_csv(rows: Iterable[tuple[str, Row]]) -> str:
    """All rows of all runs, the oldest first. Cells that a spreadsheet would compute begin with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_FIELDS)
    for finished, row in rows:
        values = {"finished": finished, **vars(row)}
        writer.writerow([_cell(values[name]) for name in _FIELDS])
    return text.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else "" if value is None else value
