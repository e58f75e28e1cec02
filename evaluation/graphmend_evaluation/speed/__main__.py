"""Time models before and after.

    python -m graphmend_evaluation.speed --base REF_OR_FOLDER --head REF_OR_FOLDER --model package.module:factory ...

Exit codes: 0 everything was measured, 1 something of a model could not be, 2 it could not be done.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from graphmend_evaluation.checkouts import CheckoutError, checkouts
from graphmend_evaluation.isolation import DEFAULT_TIMEOUT, Policy, torch_is_installed
from graphmend_evaluation.results import to_json
from graphmend_evaluation.speed import page
from graphmend_evaluation.speed.measuring import measure_speed
from graphmend_evaluation.speed.options import DEFAULT_BUDGET, SpeedOptions
from graphmend_evaluation.speed.results import SPEED_SCHEMA, SpeedRow


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options, _speed_options(options))
    except (CheckoutError, ValueError) as error:
        print(f"speed: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("speed: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace, wanted: SpeedOptions) -> int:
    if not torch_is_installed():
        raise CheckoutError(
            "torch is not installed; install graphmend with its extra `eval`: pip install '.[eval]' in a checkout"
        )
    rows = []
    with (
        checkouts(options.repository, options.base, options.head) as (base, head),
        tempfile.TemporaryDirectory() as work,
    ):
        for number, model in enumerate(options.model):
            print(f"{model}", flush=True)
            row = measure_speed(
                base,
                head,
                model,
                folder=Path(work) / str(number),
                policy=Policy(timeout=options.timeout),
                options=wanted,
                seed=Path(work) / "seed",
                progress=lambda line: print(f"  {line}", flush=True),
            )
            rows.append(row)
    for line in page.lines(rows):
        print(line)
    if options.results is not None:
        print(f"The page and all numbers are in {write(rows, options.results)}")
    return 0 if all(row.ok for row in rows) else 1


def write(rows: Sequence[SpeedRow], folder: Path) -> Path:
    """The page and the numbers as dated files. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / rows[0].date.partition("T")[0]
    stem.with_suffix(".md").write_text(page.markdown(rows), encoding="utf-8")
    found = {"schema": SPEED_SCHEMA, "rows": [to_json(row) for row in rows]}
    stem.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return folder


def _speed_options(options: argparse.Namespace) -> SpeedOptions:
    return SpeedOptions(
        device=options.device,
        backend=options.backend,
        cold=options.cold,
        rounds=options.rounds,
        processes=options.processes,
        threads=options.threads,
        budget_s=options.budget,
    )


def _parser() -> argparse.ArgumentParser:
    defaults = SpeedOptions()
    parser = argparse.ArgumentParser(prog="python -m graphmend_evaluation.speed", description="Time models twice.")
    parser.add_argument("--base", required=True, help="a folder, or a commit of the repository")
    parser.add_argument("--head", required=True, help="a folder, or a commit of the repository")
    parser.add_argument("--model", action="append", required=True, help="package.module:factory; may be repeated")
    parser.add_argument("--repository", type=Path, default=Path(), help="where commits are looked up [default: .]")
    parser.add_argument("--results", type=Path, help="a folder for the dated page and all numbers")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default=defaults.device)
    parser.add_argument("--backend", default=defaults.backend, help=f"[default: {defaults.backend}]")
    parser.add_argument("--cold", type=int, default=defaults.cold, help="fresh processes an arm; 0: no cold start")
    parser.add_argument("--rounds", type=int, default=defaults.rounds, help="blocks of calls; 0: no steady state")
    parser.add_argument("--processes", type=int, default=defaults.processes, help="long-lived processes an arm")
    parser.add_argument("--threads", type=int, default=defaults.threads, help="torch's threads on a CPU [default: 1]")
    parser.add_argument(
        "--budget",
        type=float,
        default=DEFAULT_BUDGET,
        help=f"about how many seconds one model may take [default: {DEFAULT_BUDGET:g}]",
    )
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, help="seconds for one step [default: 600]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
