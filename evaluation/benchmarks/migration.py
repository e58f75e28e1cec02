"""What the concrete trees cost a migration: `python evaluation/benchmarks/migration.py --package FOLDER ...`.

Each package is copied into a git repository and migrated without models, with and without the proof over concrete
trees, in turns. Writes docs/migration-cost.md and the raw numbers. Exit code 2 when it could not be measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import outcome
from benchmarks.commands import ROOT, environment_of
from benchmarks.corpus import Corpus, copy, make_corpus
from benchmarks.timing import Run, RunError, Spread, timed

WITH, WITHOUT = "with the proof", "without"
_WITHOUT = (
    "import sys; from graphmend_codemod.migrate import shared_session\n"
    "shared_session.verify_concrete = lambda before, after, edits: None\n"
    "from graphmend_codemod.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
_MIGRATE = ("migrate", "--no-evaluate", "--dry-run", "--jobs", "1")


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the page and the numbers, return the exit code."""
    parser = argparse.ArgumentParser(prog="migration", description=__doc__)
    parser.add_argument("--package", type=Path, nargs="+", required=True, help="folders of packages")
    parser.add_argument("--repetitions", type=int, default=3, help="rounds [default: %(default)s]")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/migration-cost.md")
    parser.add_argument("--results", type=Path, default=ROOT / "evaluation/benchmarks/results")
    options = parser.parse_args(arguments)
    load = outcome.load()
    try:
        rows = [measure(package.resolve(), options.repetitions) for package in options.package]
    except RunError as error:
        print(f"migration: error: a measured command failed: {error}", file=sys.stderr)
        return 2
    machine = outcome.machine(load)
    raw = options.results / f"{machine.date}-migration.json"
    data = {"machine": asdict(machine), "commit": outcome.commit_of(ROOT), "packages": [_numbers(*row) for row in rows]}
    raw.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(page(rows, machine, raw.name), encoding="utf-8")
    return 0


def measure(package: Path, repetitions: int) -> tuple[Corpus, str, dict[str, list[Run]]]:
    """The corpus, the last line that a migration prints, and its runs with and without the proof, in turns."""
    with tempfile.TemporaryDirectory(prefix="graphmend-migration-") as place:
        folder = Path(place)
        corpus = make_corpus(package, folder / "repository")
        copy(ROOT / "graphmend_codemod", folder / "checkout/graphmend_codemod")
        environment = {**environment_of(folder / "cache"), "PYTHONPATH": str(folder / "checkout")}
        ways = {WITH: ("-m", "graphmend_codemod"), WITHOUT: ("-c", _WITHOUT)}
        runs: dict[str, list[Run]] = {way: [] for way in ways}
        printed: set[str] = set()
        for _ in range(repetitions):
            for way, start in ways.items():
                print(f"migration: {package.name}, {way}", file=sys.stderr, flush=True)
                command = [sys.executable, *start, *_MIGRATE]
                run, text = timed(command, folder=corpus.root, environment=environment)
                runs[way].append(run)
                printed.add(text)
        if len(printed) != 1:
            raise RunError(f"{package.name}: migrations with and without the proof differ")
        return corpus, printed.pop(), runs


def page(rows: Sequence[tuple[Corpus, str, dict[str, list[Run]]]], machine: outcome.Machine, raw: str) -> str:
    """The Markdown page."""
    lines = [
        "# What the proof over concrete trees costs a migration",
        "",
        "Written by `evaluation/benchmarks/migration.py`; do not edit. The raw numbers are in",
        f"`evaluation/benchmarks/results/{raw}`.",
        "",
        f"- {machine.date}, {machine.processor}, {machine.cores} cores, load average {machine.load_before:.1f} before, "
        f"{machine.load_after:.1f} after",
        f"- `graphmend {' '.join(_MIGRATE)}`, median of {len(rows[0][2][WITH])} runs (lowest to highest), in turns",
        "- both print the same",
        "",
        "| package | files | with the proof, CPU s | without, CPU s | more | peak MB with | without |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for corpus, _, runs in rows:
        ratio = Spread.of(a.cpu / b.cpu for a, b in zip(runs[WITH], runs[WITHOUT], strict=True))
        peaks = (max(run.peak_bytes for run in runs[way]) / 1e6 for way in (WITH, WITHOUT))
        name = corpus.files[0].path.split("/")[1]
        cells = [
            name,
            f"{len(corpus.files):,}",
            *(_spread(Spread.of(run.cpu for run in runs[way])) for way in (WITH, WITHOUT)),
            f"{ratio.median - 1:.0%}",
            *(f"{peak:.0f}" for peak in peaks),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "The proof parses the changed top-level statements of a file, before and after, with libcst and compares them.",
        "`check`, `fix` and the commit hook do without it and do not import libcst.",
    ]
    return "\n".join(lines) + "\n"


def _spread(found: Spread) -> str:
    return f"{found.median:.1f} ({found.low:.1f} to {found.high:.1f})"


def _numbers(corpus: Corpus, printed: str, runs: dict[str, list[Run]]) -> dict[str, object]:
    return {
        "package": corpus.files[0].path.split("/")[1],
        "files": len(corpus.files),
        "bytes": corpus.size,
        "printed": printed.strip().splitlines()[-1:],
        "runs": {way: [asdict(run) for run in found] for way, found in runs.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
