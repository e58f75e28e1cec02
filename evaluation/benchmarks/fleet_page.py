"""The Markdown page of a measured fleet: every number on it comes from the run, or is told as a forge's own limit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from benchmarks.fleet_outcome import TARGET, FleetOutcome, Requests
from benchmarks.fleet_runs import FleetRun

_QUIET = 0.7
_MANY = 10_000
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_REQUESTS_AN_HOUR, _CREATIONS_AN_HOUR = 5_000, 500
_WIDTH = 120

_INTRODUCTION = """\
# What a fleet takes

Written by `evaluation/benchmarks/fleet.py`; do not edit. The raw numbers are in `{results}`.
[fleets.md](fleets.md) is the guide.
"""
_HOW = """\
CPU seconds are user and system time of all processes; of a cluster, without what its idle processes take to start and
end. *Overhead* is what a repository takes beyond a `graphmend check` of its own, start-up of Python included in both.
*Command* is the memory of the command itself when a quarter, a half, three quarters and all repositories were done;
*child* the largest process of one repository; *all* the largest sum over all processes, in which shared pages count in
each. *Disk* is the most that ever lay in the temporary folder, *left* what lay there at the end.
"""
_SERVED = """\
Over HTTP from git on the same machine, two at a time. Each repository has 200 kB that are not code. The cache is that
of `--object-cache`: cold, it is filled; warm, the repositories have not changed."""
_HEADS = tuple(
    "run|wall s|CPU s|CPU s each|overhead s each|command MB|child MB|all MB|disk MB|left kB".split("|"),
)
_SERVED_HEADS = ("run", "repositories", "CPU s each", "fetched kB each", "disk MB", "left kB")


def render(outcome: FleetOutcome, results: str) -> str:
    """The page; `results` names the file with the raw numbers."""
    return "\n".join([_INTRODUCTION.format(results=results), *_sections(outcome)]).rstrip("\n") + "\n"


def _sections(outcome: FleetOutcome) -> Iterator[str]:
    yield from _answer(outcome)
    yield from _where(outcome)
    yield from ("## Checks of clones", "")
    yield from _table(_HEADS, (_row(outcome, run) for run in outcome.runs))
    yield ""
    yield _HOW
    yield from ("## Checks from addresses", "", _SERVED, "")
    yield from _table(_SERVED_HEADS, (_served_row(run) for run in outcome.served))
    yield ""
    yield from _ten_thousand(outcome)


def _answer(outcome: FleetOutcome) -> Iterator[str]:
    names = {"local": "local processes", "dask": "a Dask cluster"}
    for kind, name in names.items():
        gain = outcome.gain(kind)
        if gain is not None:
            word = "met" if gain >= TARGET else "**not met**"
            yield f"- Two workers are {gain:.2f} times as fast as one with {name} (target: {TARGET}; {word})."
    first = outcome.runs[0]
    spent, beside = first.per_repository, outcome.overhead(first)
    yield f"- A repository takes {spent:.2f} CPU seconds, {beside:.2f} of them beside its own check."
    if first.parent:
        low, high = min(first.parent) / 1e6, max(first.parent) / 1e6
        yield f"- The command's memory stays between {low:.0f} and {high:.0f} MB from the first quarter to the end."
    failed = sum(run.failed for run in (*outcome.runs, *outcome.served))
    yield f"- **{failed} repositories failed.**" if failed else "- No repository failed."
    yield ""


def _where(outcome: FleetOutcome) -> Iterator[str]:
    machine = outcome.machine
    busy = "; others were at work, which makes wall times and the gain of workers worse than they are"
    yield _paragraph(
        f"{machine.date}, {machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
        f"graphmend {outcome.graphmend}, load average {machine.load_before:.1f} before and {machine.load_after:.1f} "
        f"after{busy if machine.load_before > _QUIET else ''}."
    )
    yield ""
    rows = (
        (
            one.kind,
            str(one.repositories),
            f"{one.files:,}",
            f"{one.size / 1e6:.1f}",
            f"{one.cpu / one.repositories:.2f}",
            f"{one.wall / one.repositories:.2f}",
        )
        for one in outcome.baselines
    )
    yield from _table(("repositories", "how many", "Python files", "MB", "own check, CPU s each", "wall s each"), rows)
    yield ""


def _row(outcome: FleetOutcome, run: FleetRun) -> tuple[str, ...]:
    return (
        run.name,
        f"{run.wall:.0f}",
        f"{run.cpu - run.cpu_start:.0f}",
        f"{run.per_repository:.2f}",
        f"{outcome.overhead(run):.2f}",
        ", ".join(f"{size / 1e6:.0f}" for size in run.parent),
        f"{run.child / 1e6:.0f}",
        f"{run.tree / 1e6:.0f}",
        f"{run.disk / 1e6:.1f}",
        f"{run.left / 1e3:.0f}",
    )


def _served_row(run: FleetRun) -> tuple[str, ...]:
    return (
        run.name,
        str(run.repositories),
        f"{run.per_repository:.2f}",
        f"{run.fetched / run.repositories / 1e3:.1f}",
        f"{run.disk / 1e6:.1f}",
        f"{run.left / 1e3:.0f}",
    )


def _ten_thousand(outcome: FleetOutcome) -> Iterator[str]:
    """What follows for many more."""
    yield from (f"## {_MANY:,} repositories", "")
    first = outcome.runs[0]
    overhead, gain = outcome.overhead(first), outcome.gain("local") or 1.0
    yield _paragraph(
        f"**Time.** A repository takes {overhead:.2f} CPU seconds and what its own check takes. For {_MANY:,} like "
        "these that makes:"
    )
    yield ""
    for one in outcome.baselines:
        hours = _MANY * (one.cpu / one.repositories + overhead) / 3600
        yield f"- the {one.kind} ones: {hours:.1f} hours of one core, {hours / gain:.1f} hours with two at a time."
    yield ""
    yield _paragraph(
        f"**Memory.** Each repository at a time takes up to {first.child / 1e6:.0f} MB, as much as the largest of "
        f"these; the command itself keeps the list, {outcome.orders / 1e6:.0f} MB for {_MANY:,}, and no rows."
    )
    yield ""
    fetched = {run.name: run.fetched / run.repositories for run in outcome.served}
    yield _paragraph(
        "**Disk and network.** Nothing is left of a repository. Repositories like the generated ones bring "
        f"{fetched['fetched'] * _MANY / 1e6:.0f} MB over the network, and with a warm cache "
        f"{fetched['fetched, warm cache'] * _MANY / 1e6:.0f} MB; what is not code is left out in both."
    )
    yield ""
    yield from _forge(outcome.requests)


def _forge(requests: Iterable[Requests]) -> Iterator[str]:
    yield _paragraph(
        "**The forge.** This is the narrower door. Checks ask no API. `fleet pr` asks for each repository (counted at "
        "a fake of GitHub's API; requests of git do not count against its limits):"
    )
    yield ""
    rows = []
    for one in requests:
        api, writing = one.api / one.repositories, one.api_writing / one.repositories
        limits = [_REQUESTS_AN_HOUR / api, *([_CREATIONS_AN_HOUR / writing] if writing else [])]
        cells = (f"{api:.1f}", f"{writing:.1f}", f"{one.git / one.repositories:.1f}")
        hours = _MANY / min(limits)
        rows.append((one.done, *cells, f"{one.cpu / one.repositories:.2f}", f"{min(limits):,.0f}", f"{hours:.1f}"))
    heads = ("pull request", "API requests", "writing ones", "of git", "CPU s", "most an hour", f"hours for {_MANY:,}")
    yield from _table(heads, rows)
    yield ""
    yield _paragraph(
        f"The last two columns follow from what GitHub's documentation allows a token: {_REQUESTS_AN_HOUR:,} requests "
        f"an hour, and about {_CREATIONS_AN_HOUR} an hour that make content. A larger fleet is split by organisation "
        "and token; `--resume` goes on where a limit ended a run. graphmend waits as the forge's headers say, for each "
        "repository up to `--patience`."
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|---{'|---:' * (len(heads) - 1)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
