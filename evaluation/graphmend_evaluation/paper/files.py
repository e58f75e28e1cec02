"""The dated files of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphmend_evaluation.paper import table
from graphmend_evaluation.paper.full import FULL_SCHEMA, FullRow
from graphmend_evaluation.paper.hub import NotRun
from graphmend_evaluation.paper.rows import ROWS, published
from graphmend_evaluation.paper.table import Measured
from graphmend_evaluation.results import from_json, to_json

_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


class FileError(Exception):
    """A file of results that cannot be read. The text is one line: file, cause, way out."""


def write_table(results: Sequence[Measured], not_run: Sequence[NotRun], about: dict[str, str], folder: Path) -> Path:
    """The table of small models, as Markdown and as JSON. Returns the JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / _day(about)
    stem.with_suffix(".md").write_text(table.markdown(results, not_run, about), encoding="utf-8")
    return _write(table.as_json(results, not_run, about), stem.with_suffix(".json"))


def write_full(rows: Sequence[FullRow], about: dict[str, str], folder: Path) -> Path:
    """Models at their real size."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"schema": FULL_SCHEMA, "about": about, "rows": [_slim(row) for row in rows]}
    return _write(found, folder / f"{_day(about)}-full.json")


def newest_table(folder: Path) -> tuple[Path, dict[str, str], tuple[Measured, ...], tuple[NotRun, ...]]:
    """The newest dated table in `folder`.

    Raises `FileError` when there is none that can be read.
    """
    path = _newest(folder, f"{_DAY}.json")
    if path is None:
        raise FileError(f"{folder} has no dated table: run python -m graphmend_evaluation.paper --results {folder}")
    data = _read(path)
    try:
        return path, dict(data["about"]), *table.read_json(data)
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not a table of this version ({error}): run it again") from error


def newest_full(folder: Path) -> tuple[Path, dict[str, str], tuple[FullRow, ...]] | None:
    """The newest dated run at real size in `folder`, None where there is none.

    Raises `FileError` when it cannot be read.
    """
    path = _newest(folder, f"{_DAY}-full.json")
    if path is None:
        return None
    data = _read(path)
    try:
        return path, dict(data["about"]), tuple(from_json(FullRow, row) for row in data["rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not a run of this version ({error}): run it again") from error


def merged(
    folder: Path, results: Sequence[Measured], not_run: Sequence[NotRun]
) -> tuple[tuple[Measured, ...], list[NotRun]]:
    """These rows, and those of the newest table that are not among them, in the order of the published table."""
    if _newest(folder, f"{_DAY}.json") is None:
        return tuple(results), list(not_run)
    _, _, old_results, old_not_run = newest_table(folder)
    new = {measured.row.name for measured in results} | {each.model for each in not_run}
    rows = [*results, *(measured for measured in old_results if measured.row.name not in new)]
    left = [*not_run, *(each for each in old_not_run if each.model not in new)]
    order = {name: number for number, name in enumerate([row.name for row in ROWS] + list(published()))}
    return (
        tuple(sorted(rows, key=lambda measured: order[measured.row.name])),
        sorted(left, key=lambda each: order[each.model]),
    )


def merged_full(folder: Path, rows: Sequence[FullRow]) -> list[FullRow]:
    """These rows, with what the newest run at real size has beside them: other models, and other batches.

    Raises `FileError` when that run cannot be read.
    """
    newest = newest_full(folder)
    known = {row.model: row for row in (newest[2] if newest is not None else ())}
    for row in rows:
        old = known.get(row.model)
        known[row.model] = row if old is None else _over(old, row)
    order = {name: number for number, name in enumerate(published())}
    return sorted(known.values(), key=lambda row: order[row.model])


def _over(old: FullRow, new: FullRow) -> FullRow:
    return replace(new, row=new.row or old.row, one=new.one or old.one, many=new.many or old.many)


def _day(about: dict[str, str]) -> str:
    return about["date"].partition(" ")[0]


def _newest(folder: Path, pattern: str) -> Path | None:
    return max(folder.glob(pattern), default=None)


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read: {error}") from error
    return data


def _write(data: dict[str, Any], path: Path) -> Path:
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path


def _slim(row: FullRow) -> dict[str, Any]:
    data: dict[str, Any] = to_json(row)
    for arm in ("before", "after") if row.row is not None else ():
        data["row"][arm]["files"] = []
    return data
