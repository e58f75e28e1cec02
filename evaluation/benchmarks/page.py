"""The Markdown page of a benchmark run: every number on it comes from the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.commands import (
    CLEAN_LINES,
    COLD,
    COMMIT,
    COMPILED,
    EDITED,
    FIX,
    IMPORT_AST,
    NEXT_COMMIT,
    PARALLEL,
    PARSE,
    SITES_LINES,
    WARM,
)
from benchmarks.outcome import Outcome, Peer, Target
from benchmarks.timing import Run, Spread

_QUIET = 0.7
_INTRODUCTION = """\
# Benchmarks

Written by `make bench` (`evaluation/benchmarks/speed.py`); do not edit. The raw numbers of each child process are in
`{results}`.
"""
_HOW = """\
Every number is of child processes of one run. Each round has every command once, and a ratio is taken within its round;
the table shows the median with the lowest and the highest. CPU seconds are user and system time, with those of children
that were waited for. Each command ran once before to warm up. The compiled wheel is what `make wheel` builds; an
install from source is pure Python, and all other rows are of that.
"""
_PEERS_HOW = """\
Peers do other work than graphmend; the table says what a pass over the same files costs with each. A tool too slow
for the whole package had a sample of files of all sizes; its seconds after start-up are scaled up by bytes.
"""


def render(outcome: Outcome, results: str) -> str:
    """The page; `results` names the file with the raw numbers."""
    return "\n".join([_INTRODUCTION.format(results=results), *_sections(outcome)]).rstrip("\n") + "\n"


def _sections(outcome: Outcome) -> Iterator[str]:
    yield _verdict(outcome)
    yield ""
    yield from _where(outcome)
    yield from ("## Targets", "")
    yield from _table(
        ("what", "target", "measured", "low to high", ""), (_target_row(target) for target in outcome.targets)
    )
    yield from (f"\n`{name}` was not measured: {reason}." for name, reason in outcome.not_measured.items())
    yield from ("", _HOW)
    yield from _commands(outcome)
    yield from _clean_files(outcome)
    if outcome.peers:
        yield from ("## The same files through other tools", "")
        yield from _table(
            ("tool", "version", "work", "files", "CPU s", "wall s", "times `ast.parse` (CPU)"), _peer_rows(outcome)
        )
        yield from ("", _PEERS_HOW)


def _verdict(outcome: Outcome) -> str:
    missed = [target.name for target in outcome.targets if not target.met]
    lines = []
    if missed:
        lines.append(f"**{len(missed)} of {len(outcome.targets)} targets missed:** {'; '.join(missed)}.")
    else:
        lines.append(f"All {len(outcome.targets)} measured targets are met.")
    if outcome.same_findings:
        lines.append("Findings are the same without a cache, with a warm one and with more workers.")
    else:
        lines.append("**Findings differ between runs without a cache, with a warm one and with more workers.**")
    return "\n".join(lines)


def _where(outcome: Outcome) -> Iterator[str]:
    machine, corpus = outcome.machine, outcome.corpus
    yield f"- {machine.date}, {machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}"
    busy = "; others were at work, which makes wall times and the gain of workers worse than they are"
    yield (
        f"- load average {machine.load_before:.1f} before, {machine.load_after:.1f} after"
        f"{busy if machine.load_before > _QUIET else ''}"
    )
    yield "- " + ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    yield f"- {corpus['files']:,} files, {corpus['lines']:,} lines, {corpus['bytes'] / 1e6:.1f} MB"
    yield ""


def _target_row(target: Target) -> tuple[str, ...]:
    sign = "at least" if target.at_least else "at most"
    digits = 0 if target.limit >= 10 else 2
    measured = target.measured
    name = f"{target.name} ({target.note})" if target.note else target.name
    return (
        name,
        f"{sign} {target.limit:g} {target.unit}",
        f"{target.counted:.{digits}f}",
        f"{measured.low:.{digits}f} to {measured.high:.{digits}f}",
        "met" if target.met else "**not met**",
    )


def _commands(outcome: Outcome) -> Iterator[str]:
    yield from ("## Commands", "")
    rows = []
    for name in (PARSE, COLD, COMPILED, WARM, EDITED, PARALLEL, IMPORT_AST, FIX, COMMIT, NEXT_COMMIT):
        runs = outcome.runs.get(name)
        if runs:
            rows.append((f"`{name}`", str(len(runs)), *_spent(runs)))
    yield from _table(("command", "runs", "CPU s", "wall s", "peak MB"), rows)
    yield ""
    yield f"Files with sites have about {SITES_LINES:,} lines and a safe fix that asks about other files."
    yield ""


def _spent(runs: Sequence[Run]) -> tuple[str, ...]:
    cpu, wall = Spread.of(run.cpu for run in runs), Spread.of(run.wall for run in runs)
    peak = max(run.peak_bytes for run in runs) / 1e6
    digits = 3 if wall.median < 1 else 2
    return (*(f"{each.median:.{digits}f} ({each.low:.{digits}f} to {each.high:.{digits}f})" for each in (cpu, wall)),
            f"{peak:.0f}")  # fmt: skip


def _clean_files(outcome: Outcome) -> Iterator[str]:
    yield f"Clean files of about {CLEAN_LINES} lines, `graphmend fix FILE` against `import ast` alone, in turns."
    yield "A file in which something may be found if a model calls it needs a look at all callers. It comes last, and"
    yield "no target is for it."
    yield ""
    rows = (
        (f"`{path}`", f"{extra.median * 1000:.0f}", f"{extra.low * 1000:.0f} to {extra.high * 1000:.0f}")
        for path, extra in outcome.clean_files.items()
    )
    yield from _table(("file", "ms more (wall)", "low to high"), rows)
    yield ""


def _peer_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    parse = Spread.of(run.cpu for run in outcome.runs[PARSE]).median
    files = f"{outcome.corpus['files']:,}"
    for tool, work, name in (
        ("Python", "`ast.parse`, each tree dropped at once", PARSE),
        ("graphmend", "`graphmend check --no-cache --jobs 1`", COLD),
    ):
        cpu = Spread.of(run.cpu for run in outcome.runs[name]).median
        wall = Spread.of(run.wall for run in outcome.runs[name]).median
        version = outcome.versions.get(tool, "")
        yield tool, version, work, files, *_amounts(cpu, wall, cpu / parse)
    for peer in outcome.peers:
        yield (peer.name, peer.version, peer.work, _given(peer), *_cost(peer, parse))


def _given(peer: Peer) -> str:
    return f"{peer.files:,}" if peer.share == 1.0 else f"{peer.files:,} ({peer.share:.1%} of the bytes), scaled up"


def _cost(peer: Peer, parse: float) -> tuple[str, ...]:
    if peer.failed:
        return f"failed: {peer.failed}", "", ""
    return _amounts(peer.cpu, peer.wall, peer.cpu / parse)


def _amounts(*numbers: float) -> tuple[str, ...]:
    return tuple(f"{number:.{2 if number < 10 else 0}f}" for number in numbers)


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield _line(head)
    yield _line(["---"] * len(head))
    yield from (_line(row) for row in rows)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
