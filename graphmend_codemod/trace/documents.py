"""A trace with its answers for programs: JSON, SARIF, workflow commands of GitHub, Code Quality of GitLab, Markdown."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from graphmend_codemod import __version__
from graphmend_codemod.reporting import github, gitlab
from graphmend_codemod.reporting.markdown import code, escaped
from graphmend_codemod.reporting.report import plural, shown_path
from graphmend_codemod.reporting.sarif import SCHEMA, repository_root
from graphmend_codemod.trace import break_text, text
from graphmend_codemod.trace.document import OWN, Site, SourceLine, Trace
from graphmend_codemod.trace.document import SCHEMA as TRACE_SCHEMA
from graphmend_codemod.trace.join import Answer, Joined, Remedy

_BASE = "SRCROOT"
RECOMPILED, SKIPPED = "recompiled", "skipped-frame"
_TITLES = {RECOMPILED: "A function was compiled again", SKIPPED: "A function runs in eager mode as a whole"}


class Aside(NamedTuple):
    """A function of the project that was compiled again or left to Python, in words. `id` is its own in a trace."""

    kind: str
    id: str
    place: SourceLine
    words: str


def asides(trace: Trace) -> Iterator[Aside]:
    """What costs as much as breaks and is none: recompilations and skipped functions of the project."""
    told = [
        (RECOMPILED, each.place, f"{text.recompiled(each)}: {text.reasons(each)}".removesuffix(": "))
        for each in trace.recompiled
    ]
    told += [
        (SKIPPED, each.place, f"skipped by Dynamo, runs in eager mode{text.times(each)}: {each.reason}")
        for each in trace.skipped
    ]
    seen: Counter[str] = Counter()
    for kind, place, words in told:
        if place.where == OWN:
            same = f"{kind} {place.path} {place.function}"
            seen[same] += 1
            yield Aside(kind, same if seen[same] == 1 else f"{same} {seen[same]}", place, words)


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
    """An annotation for each site of the project: a warning where a fix exists, else a notice; then notices of
    recompilations and skipped functions.

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
    for aside in asides(joined.trace) if new is None else ():
        properties = {"file": shown_path(aside.place.path, root), "line": str(aside.place.line)}
        yield github.command("notice", {**properties, "title": _TITLES[aside.kind]}, aside.words)


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


def code_quality(joined: Joined, root: Path) -> str:
    """A Code Quality report of GitLab: each site of the project, then recompilations and skipped functions."""
    base = repository_root(root)
    entries = []
    for site, answer in zip(joined.trace.sites, joined.answers, strict=True):
        if site.own is not None:
            severity = "minor" if answer.remedy is Remedy.FIX else "info"
            location = gitlab.line_of(site.own.path, site.own.line, root, base)
            name = site.gb_id or "graph-break"
            entries.append(gitlab.entry(name, message(site, answer, joined), severity, location, site.id))
    for aside in asides(joined.trace):
        location = gitlab.line_of(aside.place.path, aside.place.line, root, base)
        entries.append(gitlab.entry(aside.kind, aside.words, "info", location, aside.id))
    return json.dumps(entries, indent=2)


def sarif(joined: Joined, root: Path) -> str:
    """A SARIF 2.1.0 log; the kinds of breaks are its rules, and recompilations and skipped functions are notes."""
    base = repository_root(root)
    kinds = {site.gb_id or "graph-break": site.kind for site in joined.trace.sites}
    kinds |= {aside.kind: _TITLES[aside.kind] for aside in asides(joined.trace)}
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
            "locations": [_location(site.own, root, base, site)],
            "partialFingerprints": {"graphmendTrace/v1": site.id},
            "properties": {"seconds": site.seconds, "events": site.events, "verdict": answer.remedy.value},
        }
        for site, answer in zip(joined.trace.sites, joined.answers, strict=True)
        if site.own is not None
    ] + [
        {
            "ruleId": aside.kind,
            "level": "note",
            "message": {"text": aside.words},
            "locations": [_location(aside.place, root, base)],
            "partialFingerprints": {"graphmendTrace/v1": aside.id},
        }
        for aside in asides(joined.trace)
    ]
    run = {
        "tool": {"driver": {"name": "graphmend trace", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: {"uri": base.as_uri().rstrip("/") + "/"}},
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _location(place: SourceLine, root: Path, base: Path, site: Site | None = None) -> dict[str, Any]:
    absolute = Path(os.path.abspath(root / place.path))
    uri = (
        quote(os.fsencode(absolute.relative_to(base).as_posix()))
        if absolute.is_relative_to(base)
        else absolute.as_uri()
    )
    region: dict[str, Any] = {"startLine": place.line}
    if site is not None and site.place == place and site.column is not None and site.end_column is not None:
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
            words = escaped(text.reasons(each))
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
