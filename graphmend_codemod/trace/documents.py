"""A trace with its answers for programs: JSON, SARIF, workflow commands of GitHub, Markdown."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from graphmend_codemod import __version__
from graphmend_codemod.reporting import github
from graphmend_codemod.reporting.markdown import code, escaped
from graphmend_codemod.reporting.report import plural, shown_path
from graphmend_codemod.reporting.sarif import SCHEMA, repository_root
from graphmend_codemod.trace import break_text, text
from graphmend_codemod.trace.document import OWN, Site, SourceLine
from graphmend_codemod.trace.document import SCHEMA as TRACE_SCHEMA
from graphmend_codemod.trace.join import Answer, Joined, Remedy

_BASE = "SRCROOT"


def as_json(joined: Joined) -> str:
    """The trace's document, with an `answer` in each of its sites."""
    data = {"schema": TRACE_SCHEMA, **dataclasses.asdict(joined.trace)}
    for site, answer in zip(data["sites"], joined.answers, strict=True):
        site["answer"] = answer_object(answer)
    return json.dumps(data, indent=1)


def answer_object(answer: Answer) -> dict[str, Any]:
    """An answer as JSON has it."""
    return {
        "verdict": answer.remedy.value,
        "code": answer.code or None,
        "message": answer.message or None,
        "not_applied": answer.reason or None,
        "diff": answer.diff or None,
        "steps": list(answer.steps),
    }


def github_commands(joined: Joined, root: Path, new: frozenset[str] | None = None) -> Iterator[str]:
    """An annotation for each site of the project: a warning where a fix exists, else a notice.

    With `new`, the ids of sites that a baseline does not have, only those, as errors.
    """
    for site, answer in zip(joined.trace.sites, joined.answers, strict=True):
        if site.own is None or (new is not None and site.id not in new):
            continue
        properties = {"file": shown_path(site.own.path, root), "line": str(site.own.line)}
        if site.place == site.own and site.column is not None:
            properties["col"] = str(site.column)
        properties["title"] = f"graph break {site.gb_id}".strip()
        level = "error" if new is not None else "warning" if answer.remedy is Remedy.FIX else "notice"
        yield github.command(level, properties, message(site, answer, joined))


def message(site: Site, answer: Answer, joined: Joined) -> str:
    """A site in a few words on one line."""
    words = f"{site.kind}; {text.cost(site)}"
    if answer.remedy is Remedy.FIX:
        return f"{words}; {answer.code} fixes it: {joined.command()}"
    if answer.remedy in (Remedy.OPAQUE, Remedy.UNSAFE):
        option = "--opaque" if answer.remedy is Remedy.OPAQUE else "--unsafe-fixes"
        return f"{words}; {answer.code} fixes it with {option}: look at {joined.command(option, '--diff')}"
    if answer.reason:
        return f"{words}; {answer.code} not applied: {answer.reason}"
    return f"{words}; {answer.steps[0]}" if answer.steps else words


def sarif(joined: Joined, root: Path) -> str:
    """A SARIF 2.1.0 log; the kinds of breaks are its rules."""
    base = repository_root(root)
    kinds = {site.gb_id or "graph-break": site.kind for site in joined.trace.sites}
    rules = [
        {
            "id": gb_id,
            "shortDescription": {"text": kind or gb_id},
            **({"helpUri": page} if (page := break_text.page(gb_id if gb_id.startswith("GB") else "")) else {}),
        }
        for gb_id, kind in sorted(kinds.items())
    ]
    results = [
        {
            "ruleId": site.gb_id or "graph-break",
            "level": "warning" if answer.remedy is Remedy.FIX else "note",
            "message": {"text": message(site, answer, joined)},
            "locations": [_location(site, site.own, root, base)],
            "partialFingerprints": {"graphmendTrace/v1": site.id},
            "properties": {"seconds": site.seconds, "events": site.events, "verdict": answer.remedy.value},
        }
        for site, answer in zip(joined.trace.sites, joined.answers, strict=True)
        if site.own is not None
    ]
    run = {
        "tool": {"driver": {"name": "graphmend trace", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"uri": base.as_uri().rstrip("/") + "/"}},
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _location(site: Site, place: SourceLine, root: Path, base: Path) -> dict[str, Any]:
    absolute = Path(os.path.abspath(root / place.path))
    uri = (
        quote(os.fsencode(absolute.relative_to(base).as_posix()))
        if absolute.is_relative_to(base)
        else absolute.as_uri()
    )
    region: dict[str, Any] = {"startLine": place.line}
    if site.place == place and site.column is not None and site.end_column is not None:
        region |= {"startColumn": site.column, "endColumn": site.end_column}
    artifact = {"uri": uri, **({"uriBaseId": _BASE} if absolute.is_relative_to(base) else {})}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def markdown(joined: Joined) -> str:
    """A table of the sites, then fixes, recompilations and skipped functions: for a comment or a job summary."""
    trace = joined.trace
    parts = [f"**{text.summary(joined)}**"]
    if trace.sites:
        rows = ["| site | kind | cost | graphmend |", "|---|---|---|---|"]
        rows += [_row(site, answer) for site, answer in zip(trace.sites, joined.answers, strict=True)]
        parts.append("\n".join(rows))
    for site, answer in zip(trace.sites, joined.answers, strict=True):
        if answer.diff and "```" not in answer.diff:
            title = f"{answer.code} at {code(f'{site.shown.path}:{site.shown.line}')}"
            parts.append(f"<details><summary>{title}</summary>\n\n```diff\n{answer.diff.rstrip()}\n```\n\n</details>")
    if trace.recompiled:
        rows = ["Recompiled:", ""]
        for each in trace.recompiled:
            words = "; ".join(escaped(reason.words) for reason in each.reasons[:3])
            rows.append(f"- {code(f'{each.place.path}:{each.place.line}')} {plural(each.count, 'time')}: {words}")
        parts.append("\n".join(rows))
    if trace.skipped:
        rows = ["Skipped by Dynamo (run in eager mode):", ""]
        rows += [f"- {code(f'{each.place.path}:{each.place.line}')}: {escaped(each.reason)}" for each in trace.skipped]
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _row(site: Site, answer: Answer) -> str:
    place = site.shown
    library = "" if site.where == OWN else f" (in {code(f'{site.place.path}:{site.place.line}')})"
    page = break_text.page(site.gb_id)
    kind = f"[{site.gb_id}]({page}) {escaped(site.kind)}" if page else escaped(site.kind)
    said = f"{answer.code} {answer.remedy.value}".strip()
    reason = answer.reason or (answer.steps[0] if answer.steps else "")
    return f"| {code(f'{place.path}:{place.line}')}{library} | {kind} | {text.cost(site)} | {said}" + (
        f": {escaped(reason)} |" if reason else " |"
    )
