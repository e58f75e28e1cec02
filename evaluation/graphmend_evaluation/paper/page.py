"""The page of the docs, generated from the newest dated results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphmend_evaluation.paper import files, real_size_page, table
from graphmend_evaluation.paper.full import FullRow
from graphmend_evaluation.paper.hub import NotRun
from graphmend_evaluation.paper.rows import published
from graphmend_evaluation.paper.table import Measured, graphs

_HEAD = """\
# The published table

<!-- Generated from the newest files in evaluation/paper by
     python -m graphmend_evaluation.paper --render evaluation/paper; edits are lost. -->

The paper that this project takes its name from (arXiv 2509.16248) reports 147 graph breaks in 27 models, of which its
authors' tool removes 107. This is the same table by `graphmend migrate`, measured with our strict counter."""
_COLUMNS = """\
*Published* is the number of breaks in the paper and the percentage that its authors' tool removed; it counts graphs
less one, of all models of a row alike. *Graphs* is that count here. *Break events* counts each break once for each
frame that it breaks, *break sites* are places in the source. *Eager* compares outputs, exceptions, messages, state
and random numbers before and after, bit for bit, for calls with different inputs. *Compiled* compares them with eager
mode within each dtype's tolerance, capture flags off, `dynamic=False`; *Inductor* does so with that backend after the
migration, where torch decides which sizes are dynamic, and says how often it compiles anew. *Messages* counts log
records and warnings of the first call: before, after, and after under compile."""
_NO_GPU = """\
**Nothing on this page has run on a GPU yet**: no machine that these results come from had one. What needs one, and has
only been tested as far as a processor allows: `mode="reduce-overhead"`, counts of CUDA graph and kernel launches,
stream syncs and copies to the host, and times at the models' real sizes. To get them, on a machine with a GPU:
`python -m graphmend_evaluation.paper --full --random-weights --no-counts --one-process --cold 1 --together 12
--results evaluation/paper`: twelve models compile at the same time, on two cores each, and are timed one by one;
`--sizes one` and `--rows` take a part, `--update` adds it to what is there. `evaluation/benchmarks/failed_check.py`
says what a check that fails does to a process."""


def write(folder: Path, target: Path) -> int:
    """Write the page from the newest results in `folder`. Returns the exit code.

    Raises `files.FileError` when there are none, or they cannot be read.
    """
    path, about, results, not_run = files.newest_table(folder)
    full = files.newest_full(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    source = Path(os.path.relpath(path, target.parent)).as_posix()
    text = "\n\n".join(_sections(results, not_run, about, source, full))
    target.write_text(text + "\n", encoding="utf-8")
    print(f"{target} is written from {path}" + (f" and {full[0]}" if full is not None else ""))
    return 0


def _sections(
    results: Sequence[Measured],
    not_run: Sequence[NotRun],
    about: dict[str, str],
    source: str,
    full: tuple[Path, dict[str, str], tuple[FullRow, ...]] | None,
) -> Iterator[str]:
    yield _HEAD
    yield _answer(results)
    yield _told(about) + f" All measurements: [{Path(source).name}]({source})."
    yield "## Small models, random weights"
    yield "Two layers and a width of 64: the break sites are in the code and not in the size. Times are not compared."
    yield table.as_markdown(results)
    yield _COLUMNS
    remarks = [f"- {line.strip()}" for line in table.remarks(results) if line.strip()]
    if remarks:
        yield "\n".join(remarks)
    yield table.took(results)
    newest = max((each.date for each in results), default="")
    earlier = [f"{each.row.name} ({each.date})" for each in results if each.date != newest]
    if earlier:
        yield f"Rows were not all measured at the same time: {', '.join(earlier)}; the others {newest}."
    if not_run:
        yield "## Rows that were not run"
        yield "\n".join(_unrun(not_run))
    yield "## Real sizes"
    if full is None or not any(real_size_page.on_gpu(row) for row in full[2]):
        yield _NO_GPU
    if full is not None:
        yield _told(full[1])
        yield from real_size_page.sections(full[2])


def _answer(results: Sequence[Measured]) -> str:
    """The sentence that a reader looks for."""
    models, before, after, whole = 0, 0, 0, 0
    published_breaks, left_by_theirs = 0, 0
    for measured in results:
        first, last = graphs(measured.models[0])
        count = len(measured.row.stands_for)
        if first is None or last is None:
            continue
        models += count
        before += count * max(0, first - 1)
        after += count * max(0, last - 1)
        whole += count * measured.whole
        for name in measured.row.stands_for:
            published_breaks += published()[name].breaks
            left_by_theirs += round(published()[name].breaks * (100 - published()[name].fixed_percent) / 100)
    changed = [measured.row.name for measured in results if measured.problems]
    problems = f" Rows with a problem: {', '.join(changed)}." if changed else " No row's eager results have changed."
    return (
        f"**{models} of 27 models were run: {before} breaks before, {after} after; {whole} models are one graph.**\n"
        "Breaks are graphs less one, as published, and a layer that is compiled again for its next instance adds one.\n"
        f"The published tool leaves {left_by_theirs} of {published_breaks} in the same models.{problems}"
    )


def _told(about: dict[str, str]) -> str:
    named = ", ".join(f"{name} {value}" for name, value in about.items() if name != "date")
    return f"Measured {about['date']}: {named}."


def _unrun(not_run: Sequence[NotRun]) -> Iterator[str]:
    yield "| model | published | not run because |"
    yield "| --- | --- | --- |"
    for each in not_run:
        known = published()[each.model]
        yield f"| {each.model} | {known.breaks} (-{known.fixed_percent}%) | {each.reason} |"
