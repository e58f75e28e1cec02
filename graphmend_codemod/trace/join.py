"""What graphmend can do about the places where a run broke: each site beside the finding on its line."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.core.findings import Finding, Safety
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.core.terminal import printable
from graphmend_codemod.engine import api
from graphmend_codemod.reporting.diff import unified
from graphmend_codemod.trace import contradicted
from graphmend_codemod.trace.document import OWN, TORCH, Site, SourceLine, Trace
from graphmend_codemod.trace.hints import with_hints
from graphmend_codemod.trace.watched import above

_ANSWERS = Path(__file__).with_name("answers.json")
# A rule that says why no other rule has anything for a line: less than any of those.
_LAST = "GM703"
_TAKING_CALLS = frozenset({"_recorded_operator", "_recorded_function", "_recorded_draws", "_are_constants"})
"""Helpers of edits that make one operator, or a constant, of all that a statement calls."""
_NUMPY = re.compile(r"numpy\.(u?int\d+|float\d+)")


class Remedy(enum.Enum):
    """What can be done about a site."""

    FIX = "fix"
    UNSAFE = "unsafe fix"
    OPAQUE = "opaque operator"
    DECLINED = "not applied"
    ADVICE = "advice"
    NONE = "no rule"
    LIBRARY = "in a library"


@dataclass(frozen=True)
class Answer:
    """What graphmend says of a site.

    `code` and `message` are those of the finding on its line, empty where there is none. `reason` is why there is no
    fix, `diff` the fix as a unified diff, `steps` are what to do by hand, the best first.
    """

    remedy: Remedy
    code: str = ""
    slug: str = ""
    message: str = ""
    reason: str = ""
    diff: str = ""
    steps: tuple[str, ...] = ()
    finding: Finding | None = None


@dataclass(frozen=True)
class Joined:
    """A trace with an answer for each of its sites, by the site's number in the trace. `file` holds the trace."""

    trace: Trace
    answers: tuple[Answer, ...]
    file: str = ""

    def command(self, *options: str) -> str:
        """The command that writes the fixes."""
        return printable(shlex.join(["graphmend", "fix", *(["--trace", self.file] if self.file else []), *options]))

    def count(self, *remedies: Remedy) -> int:
        """How many sites have one of these verdicts."""
        return sum(answer.remedy in remedies for answer in self.answers)


def join(trace: Trace, settings: Settings, *, jobs: int = 1, cache: bool = True, file: str = "") -> Joined:
    """Look for the findings on the lines of the trace's sites. Reads the project, writes nothing."""
    settings = with_hints(trace, settings)
    root = settings.root
    places = [
        each
        for site in trace.sites
        if site.own is not None
        for each in (site.own, *(one for every in above(site) for one in every))
    ]
    paths = sorted({place.path for place in places if (root / place.path).is_file()})
    found: tuple[Finding, ...] = ()
    if paths:
        found = api.check([root / path for path in paths], settings, jobs=jobs, cache=cache).findings
    by_path: dict[str, list[Finding]] = {}
    for finding in found:
        by_path.setdefault(finding.path, []).append(finding)
    return Joined(trace, tuple(answer(site, by_path, settings) for site in trace.sites), file)


def matching(place: SourceLine, findings: Iterable[Finding], settings: Settings) -> Finding | None:
    """The finding that speaks of a line: one that can be fixed before one that cannot, the closest one first."""
    here = [finding for finding in findings if covers(finding, place.line)]
    return min(here, key=lambda each: _rank(each, settings), default=None)


def covers(finding: Finding, line: int) -> bool:
    """Whether a finding, or the edit that mends it, speaks of a line."""
    spans = [finding.span]
    if finding.edit is not None:
        spans += [replacement.span for replacement in finding.edit.replacements]
    return any(span.start_line <= line <= max(span.end_line, span.start_line) for span in spans)


def _rank(finding: Finding, settings: Settings) -> tuple[object, ...]:
    span = finding.span
    return (
        not finding.is_applied(settings.unsafe_fixes, settings.opaque),
        not finding.fixable,
        finding.code == _LAST,
        finding.safety is Safety.ADVICE,
        span.end_line - span.start_line,
        span,
    )


def answer(site: Site, by_path: Mapping[str, Sequence[Finding]], settings: Settings) -> Answer:
    """What the findings, by path, say of one site."""
    own = _own_now(site, settings.root)
    finding = None if own is None else matching(own, by_path.get(own.path, ()), settings)
    if finding is None or not finding.is_applied(settings.unsafe_fixes, settings.opaque):
        finding = next(iter(around(site, by_path)), finding)
    elif not finding.is_applied(False):
        finding = next(iter(around(site, by_path, safe=True)), finding)
    if finding is None:
        remedy = Remedy.NONE if site.where == OWN else Remedy.LIBRARY
        first = () if site.own is None else _about_file(settings.root, site.own, own)
        return Answer(remedy, steps=(*first, *_steps(site)))
    source, after = _edited(finding, settings) if finding.edit is not None else (None, None)
    diff = unified(finding.path, source.raw, after.raw).decode("utf-8", "replace") if source and after else ""
    reason = finding.declined or ""
    false = contradicted.condition(source.text, after.text, site) if source and after else None
    if false is not None:
        diff, reason = "", f"the run would not take the compile path that {finding.code} writes: {false}"
    if finding.safety is Safety.ADVICE:
        remedy = Remedy.ADVICE if site.where == OWN else Remedy.LIBRARY
    elif finding.edit is None or not diff:
        remedy = Remedy.DECLINED
        reason = reason or "the edit cannot be applied here"
    else:
        remedy = Remedy.OPAQUE if finding.safety is Safety.OPAQUE else Remedy.UNSAFE
        remedy = Remedy.FIX if finding.is_applied(False) else remedy
    steps = () if diff else tuple(_steps(site))
    return Answer(remedy, finding.code, finding.slug, finding.message, reason, diff, steps, finding)


def around(site: Site, by_path: Mapping[str, Sequence[Finding]], *, safe: bool = False) -> list[Finding]:
    """The fixes of the statements that led to the site which take or mend what they call: of all that did, or none."""
    for places in above(site):
        found = [_of_call(by_path.get(place.path, ()), place.line, safe) for place in places]
        fixes = [each for each in found if each is not None]
        if len(fixes) == len(found):
            return fixes
    return []


def _of_call(findings: Sequence[Finding], line: int, safe: bool) -> Finding | None:
    """The fix that takes or mends what a line calls: a safe one before an operator."""
    found = [each for each in findings if _takes(each, line, safe)]
    return min(found, key=lambda each: not each.is_applied(False), default=None)


def _takes(finding: Finding, line: int, safe: bool) -> bool:
    if finding.edit is None or not covers(finding, line) or (safe and not finding.is_applied(False)):
        return False
    return finding.edit.reaches or any(helper.name in _TAKING_CALLS for helper in finding.edit.helpers)


def line_now(site: Site, lines: Sequence[str]) -> int | None:
    """Where the site's line is now, from 1; None where it is gone. Without source in the trace, where it was."""
    assert site.own is not None
    was, text = site.own.line, site.own_source.strip()
    if not text:
        return was
    same = [number for number, line in enumerate(lines, 1) if line.strip() == text]
    return min(same, key=lambda number: abs(number - was), default=None)


def _own_now(site: Site, root: Path) -> SourceLine | None:
    """The site's line of the project where it is now; None where there is none."""
    if site.own is None:
        return None
    try:
        line = line_now(site, SourceFile.below(str(root), site.own.path).text.splitlines())
    except SourceError:
        return site.own
    return None if line is None else dataclasses.replace(site.own, line=line)


def _about_file(root: Path, was: SourceLine, now: SourceLine | None) -> tuple[str, ...]:
    """What is to be said where nothing was found because of the file: it is not there, or not as the run had it."""
    if not (root / was.path).is_file():
        return (f"There is no {was.path} in this folder: show the trace in the project's.",)
    return () if now == was else (f"{was.path} has changed since the run, perhaps by a fix: record it once more.",)


def denied(site: Site, finding: Finding, settings: Settings) -> bool:
    """Whether the run knew that the finding's fix would leave the site's break where it is."""
    source, after = _edited(finding, settings) if finding.edit is not None else (None, None)
    return bool(source and after and contradicted.condition(source.text, after.text, site))


def _edited(finding: Finding, settings: Settings) -> tuple[SourceFile | None, SourceFile | None]:
    """The file of a finding without and with its edit; None where that cannot be made or changes nothing."""
    from graphmend_codemod.rewriting import apply

    try:
        source = SourceFile.below(str(settings.root), finding.path)
        assert finding.edit is not None
        applied = apply(source, [finding.edit])
        return (source, source.with_text(applied.text)) if applied.text != source.text else (None, None)
    except SourceError:
        return None, None


def _steps(site: Site) -> Iterable[str]:
    """What to do by hand: what the run knew, graphmend's word about the kind, then torch's own hints."""
    if site.where != OWN:
        yield _elsewhere(site)
    yield from _numpy_numbers(site)
    answers = _answers()
    setting, topic = answers["settings"].get(site.gb_id), answers["kinds"].get(site.gb_id)
    if setting:
        yield f"{setting[:1].upper()}{setting[1:]}."
    if topic:
        yield answers["topics"][topic]
    for hint in site.hints:
        if not hint.startswith(("This graph break is fundamental", "It may be possible to write Dynamo tracing rules")):
            yield hint
    if site.skips:
        yield "The whole function runs in eager mode: move the statement out of the `try`, `with` or loop around it."


def _numpy_numbers(site: Site) -> Iterable[str]:
    """Names in the site's line that held a number of NumPy's, which Dynamo traces as a tensor."""
    for fact in site.facts:
        kind = _NUMPY.fullmatch(fact.type)
        if kind is not None and re.search(rf"(?<![\w.]){re.escape(fact.name)}(?!\w)", site.source):
            make = "int" if "int" in kind[1] else "float"
            yield (
                f"`{fact.name}` was a number of NumPy's ({kind[1]}), which Dynamo traces as a tensor: write "
                f"`{make}({fact.name})` here, or make it a Python number where it is set."
            )


def _elsewhere(site: Site) -> str:
    if site.where == TORCH:
        return "The break is inside torch: see its page; without a setting, keep the call outside the compiled region."
    if site.place.path.startswith("<"):
        return "The code is in no file (`python -c`, `exec`): put it into one of the project to have it fixed."
    if site.place.path.startswith("python3."):
        return "The break is in Python's own library: keep the call outside the compiled region."
    path = site.place.path
    checkout = path.startswith(("../", "/")) or path[1:2] == ":"  # an editable installation, or a folder on PYTHONPATH
    package = f"`{path.rpartition('/')[0]}`" if checkout else path.removeprefix("site-packages/").partition("/")[0]
    return (
        f"The break is in {package}, not in this project: look for a newer version of it, report it there, or let "
        "`graphmend migrate` work on a checkout of it."
    )


@functools.cache
def _answers() -> Mapping[str, Mapping[str, str]]:
    data: Mapping[str, Mapping[str, str]] = json.loads(_ANSWERS.read_text(encoding="utf-8"))
    return data
