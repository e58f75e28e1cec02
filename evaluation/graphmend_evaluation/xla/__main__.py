"""Run models before and after under torch_xla, and say what their breaks mean there.

    python -m graphmend_evaluation.xla --base REF_OR_FOLDER --head REF_OR_FOLDER --model package.module:factory ...

Exit codes: 0 everything was measured, 1 a model could not be, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from graphmend_evaluation.checkouts import CheckoutError, checkouts
from graphmend_evaluation.isolation import DEFAULT_TIMEOUT, Policy
from graphmend_evaluation.machine import load_average, this_machine
from graphmend_evaluation.results import to_json
from graphmend_evaluation.xla import page
from graphmend_evaluation.xla.measuring import measure_xla, torch_xla_problem
from graphmend_evaluation.xla.results import XLA_SCHEMA, XlaRow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except CheckoutError as error:
        print(f"xla: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("xla: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    load = load_average()
    rows = []
    with (
        checkouts(options.repository, options.base, options.head) as (base, head),
        tempfile.TemporaryDirectory() as work,
    ):
        policy = Policy(timeout=options.timeout)
        problem = torch_xla_problem(options.python, Path(work), policy)
        if problem is not None:
            raise CheckoutError(problem)
        for number, model in enumerate(options.model):
            print(model, flush=True)
            folder = Path(work) / str(number)
            rows.append(measure_xla(base, head, model, folder=folder, policy=policy, python=options.python))
    for line in page.lines(rows):
        print(line)
    if options.results is not None:
        print(f"The page and all numbers are in {write(rows, options.results, load)}")
    return 0 if all(row.ok for row in rows) else 1


def write(rows: Sequence[XlaRow], folder: Path, load: float) -> Path:
    """The page and the numbers as dated files. `load` is the load average at the start. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / rows[0].date.partition("T")[0]
    machine = this_machine(load)
    loads = " to ".join(f"{each:.1f}" for each in machine.load)
    about = f"{machine.processor}, {machine.cores} cores, {machine.system}, load average {loads}"
    stem.with_suffix(".md").write_text(page.markdown(rows, about), encoding="utf-8")
    found = {
        "schema": XLA_SCHEMA,
        "machine": about,
        "rows": [to_json(row) for row in rows],
        "correlations": [to_json(each) for each in page.correlations(rows)],
    }
    stem.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m graphmend_evaluation.xla", description="The XLA view of models.")
    parser.add_argument("--base", required=True, help="a folder, or a commit of the repository")
    parser.add_argument("--head", required=True, help="a folder, or a commit of the repository")
    parser.add_argument("--model", action="append", required=True, help="package.module:factory; may be repeated")
    parser.add_argument("--repository", type=Path, default=Path(), help="where commits are looked up [default: .]")
    parser.add_argument("--python", type=Path, help="the interpreter of an environment with torch_xla [default: this]")
    parser.add_argument("--results", type=Path, help="a folder for the dated page and all numbers")
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, help="seconds for one step [default: 600]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
