"""Migrate the installed transformers package and measure the rows of the published table before and after.

    python -m graphmend_evaluation.paper [--rows t5,bart-float16] [--work FOLDER] [--results FOLDER] [--jobs N]

Exit codes: 0 every row was measured and nothing but breaks has changed, 1 a row has a problem, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from graphmend_evaluation.isolation import Policy, evaluate_models, torch_is_installed
from graphmend_evaluation.paper import prepare, table
from graphmend_evaluation.paper.rows import ROWS, Row, UnknownRow, choose
from graphmend_evaluation.results import ModelRow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except (prepare.PrepareError, UnknownRow) as error:
        print(f"paper: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paper: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    rows = choose(options.rows)
    if not torch_is_installed():
        raise prepare.PrepareError(
            "torch is not installed; install graphmend with its extra: pip install 'graphmend[eval]'"
        )
    started = time.monotonic()
    work = prepare.new_folder(options.work)
    arms = _arms(options.head, work)
    results = _measure(rows, arms, work, options)
    print()
    for line in table.lines(results):
        print(line)
    about = table.about_this_run(results)
    folder = _write(results, about, options.results or work / "results")
    print(f"\n{time.monotonic() - started:.0f} s. The table and all measurements are in {folder}")
    print(f"The migrated repository is {arms.repository}, its branch {prepare.BRANCH}")
    return 1 if any(measured.problems for measured in results) else 0


def _arms(head: Path | None, work: Path) -> prepare.Arms:
    """The installed package before, and after the migration; or after `head`'s hand-made edits."""
    print("Putting the installed transformers package into a git repository", flush=True)
    repository = prepare.copy_installed("transformers", work / "repository")
    if head is not None:
        arms = prepare.check_out(repository, work, changed=False)
        return prepare.Arms(arms.before, head.resolve(), arms.repository, changed=True)
    print("Migrating it: graphmend migrate", flush=True)
    changed, said = prepare.migrate(repository)
    print("".join(f"  {line}\n" for line in said.splitlines() if line), end="", flush=True)
    return prepare.check_out(repository, work, changed=changed)


def _measure(
    rows: Sequence[Row], arms: prepare.Arms, work: Path, options: argparse.Namespace
) -> tuple[table.Measured, ...]:
    models = [model for row in rows for model in row.models]
    print(f"Compiling {len(models)} models before and after, {options.jobs} at a time", flush=True)
    finished = 0

    def tell(row: ModelRow) -> None:
        nonlocal finished
        finished += 1
        seconds = row.before.seconds + row.after.seconds
        state = "measured" if row.ok else "; ".join(row.problems)
        print(f"  [{finished}/{len(models)}] {row.model.rpartition(':')[2]}: {state} ({seconds:.0f} s)", flush=True)

    measured = evaluate_models(
        arms.before,
        arms.after,
        models,
        folder=work / "measurements",
        policy=Policy(timeout=options.timeout),
        jobs=options.jobs,
        progress=tell,
    )
    by_model = {row.model: row for row in measured}
    return tuple(table.Measured(row, tuple(by_model[model] for model in row.models)) for row in rows)


def _write(results: Sequence[table.Measured], about: dict[str, str], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / about["date"].partition(" ")[0]
    stem.with_suffix(".md").write_text(table.markdown(results, about), encoding="utf-8")
    text = json.dumps(table.as_json(results, about), indent=1)
    stem.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m graphmend_evaluation.paper",
        description="Migrate the installed transformers package and measure rows of the published table.",
    )
    parser.add_argument("--rows", help=f"comma-separated, of: {', '.join(row.name for row in ROWS)} [default: all]")
    parser.add_argument(
        "--work", type=Path, default=Path(".demo"), help="a folder of its own, emptied first [default: .demo]"
    )
    parser.add_argument("--results", type=Path, help="where the dated table goes [default: results in the work folder]")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="models measured at a time")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one model [default: 600]")
    parser.add_argument("--head", type=Path, help="measure this folder as the changed arm instead of migrating")
    return parser


if __name__ == "__main__":
    sys.exit(main())
