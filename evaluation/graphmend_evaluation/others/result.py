"""What is kept of one model in one arm. Of the exam half only totals: no file, no line, no source."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend_evaluation.results import BreakSite, Counts, SkippedFrame, to_json
from graphmend_evaluation.survey.row import Row

_HEADED = (ast.If, ast.While)


@dataclass(frozen=True)
class Result:
    """A row of the survey; `own_events` are the break events in the package's own files."""

    package: str
    model: str
    half: str
    row: Row
    own_events: int

    @property
    def key(self) -> str:
        """`package.model`."""
        return f"{self.package}.{self.model}"

    def to_json(self) -> dict[str, Any]:
        """As what `json.dumps` takes."""
        return {**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)}, "row": self.row.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """The reverse of `to_json`."""
        return cls(**{**data, "row": Row.from_json(data["row"])})


def result(package: str, model: str, half: str, row: Row) -> Result:
    """What is kept of `row`."""
    kept = blinded(row) if half == "exam" else row
    return Result(package, model, half, kept, sum(site.events for site in own_sites(row)))


def own_sites(row: Row) -> list[BreakSite]:
    """The sites in the package's own files: those of its dependencies have absolute paths."""
    sites = () if row.counts is None else row.counts.sites
    return [site for site in sites if site.path and not site.path.startswith(("/", "<"))]


def silent_events(row: Row, spans: Mapping[str, set[int]]) -> int:
    """Events on a line without a finding; `spans` are the lines of each file that have one."""
    return sum(site.events for site in own_sites(row) if site.line not in spans.get(site.path, ()))


def blinded(row: Row) -> Row:
    """The row without anything that says where or why the model breaks."""
    compiled = None if row.compiled is None else "differs"
    differences = tuple("differs" for _ in row.differences)
    row = dataclasses.replace(row, message=row.message.partition(":")[0], compiled=compiled, differences=differences)
    if row.counts is None:
        return row
    sites = tuple(
        BreakSite("", number, "", "", "", "", "", site.events) for number, site in enumerate(row.counts.sites)
    )
    skipped = tuple(SkippedFrame("", number, "", "") for number, _ in enumerate(row.counts.skipped_frames))
    strict = None if row.counts.strict_error is None else "not one graph"
    counts: Counts = dataclasses.replace(row.counts, sites=sites, skipped_frames=skipped, strict_error=strict)
    return dataclasses.replace(row, counts=counts)


def covered(root: Path, findings: Iterable[Mapping[str, Any]], fixed: Path | None = None) -> dict[str, set[int]]:
    """The lines of each file that have a finding: all of its statement, of a branch and a `while` the header alone.

    `fixed` is the folder after the fixes: what an edit replaces has one as well.
    """
    spans: dict[str, set[int]] = {}
    headers: dict[str, dict[int, int]] = {}
    for each in findings:
        path, first = str(each["path"]), int(each["location"]["line"])
        last = int((each.get("end_location") or each["location"])["line"])
        if path not in headers:
            headers[path] = _headers(root / path)
        spans.setdefault(path, set()).update(range(first, min(last, headers[path].get(first, last)) + 1))
    if fixed is not None:
        for path in spans:
            spans[path] |= _replaced(root / path, fixed / path)
    return spans


def _replaced(before: Path, after: Path) -> set[int]:
    """The lines of a file that are others in its fixed copy."""
    try:
        old, new = (path.read_text(encoding="utf-8").split("\n") for path in (before, after))
    except (OSError, ValueError):
        return set()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return {line + 1 for kind, first, last, _, _ in changes if kind != "equal" for line in range(first, last)}


def _headers(path: Path) -> dict[int, int]:
    """The last line of the header of each branch and `while`, by its first line."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return {}
    return {n.lineno: max(n.lineno, n.body[0].lineno - 1) for n in ast.walk(tree) if isinstance(n, _HEADED)}


def read(path: Path) -> dict[str, Result]:
    """The results of a file of lines, by key; none for a file that does not exist."""
    found: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            each = Result.from_json(json.loads(line))
        except ValueError:  # a line that was cut off
            continue
        found[each.key] = each
    return found


def append(path: Path, result: Result) -> None:
    """Keep one result, whatever happens next."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(to_json(result.to_json())) + "\n")
