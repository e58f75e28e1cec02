"""Thousands of generated modules through `fix`: `python evaluation/benchmarks/property_run.py --cases 5000 --seed 0`.

Prints how often each rule was applied and declined, and every case in which eager mode can tell the difference, or in
which compiled code (with and without gradients) is worse and no page tells of it, made small. Where a page does tell,
its sentence is printed with the number of modules. Exit code 1 when there is a case.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from joblib import Parallel, delayed

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print the table, return the exit code."""
    options = _options(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    sys.path.insert(0, str(ROOT))
    began = time.perf_counter()
    seeds = range(options.seed, options.seed + options.cases)
    batches = [seeds[first : first + options.batch] for first in range(0, len(seeds), options.batch)]
    totals: Counter[str] = Counter()
    failures: list[str] = []
    work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(run_batch)(list(batch), options) for batch in batches
    )
    for counts, reports in work:
        totals.update(counts)
        for text in reports:
            failures.append(text)
            print(f"{text}\n", flush=True)
    _print_table(totals, time.perf_counter() - began)
    return 1 if failures else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=100, help="cases for one process at a time")
    parser.add_argument("--compiled-every", type=int, default=25, help="compile one case in so many; 0: none")
    parser.add_argument("--backend", default="", help="compile graphs as well, such as with inductor: slow")
    parser.add_argument("--opaque", action="store_true", help="apply fixes with opaque operators as well")
    parser.add_argument("--shrink", type=int, default=200, help="tries to make a failing case smaller")
    return parser.parse_args(arguments)


def run_batch(seeds: Iterable[int], options: argparse.Namespace) -> tuple[Counter[str], list[str]]:
    """Counts and failure reports of some cases, in this process."""
    import torch

    from tests.property.cases import report, run_case, shrunk

    torch.set_num_threads(1)
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    counts: Counter[str] = Counter()
    reports = []
    every = options.compiled_every
    for seed in seeds:
        outcome = run_case(
            seed, compiled=every > 0 and seed % every == 0, opaque=options.opaque, backend=options.backend
        )
        counts["cases"] += 1
        counts["changed"] += outcome.changed
        counts["without"] += outcome.changed and "is_compiling" not in outcome.after
        counts["compiled"] += outcome.compiled and outcome.changed
        counts["different"] += bool(outcome.complaints)
        counts["company"] += outcome.changed and bool(outcome.program.company)
        counts.update(f"page {page}" for page in {page for _, page in outcome.expected})
        counts.update(f"applied {code}" for code in outcome.applied.elements())
        counts.update(f"cases {code}" for code in outcome.applied)
        counts.update(f"declined {code}" for code in outcome.declined.elements())
        if outcome.complaints:
            reports.append(report(shrunk(outcome, options.shrink)))
    return counts, reports


def _print_table(totals: Counter[str], seconds: float) -> None:
    print(
        f"{totals['cases']} modules in {seconds:.0f} s: {totals['changed']} changed "
        f"({totals['without']} without a second path), "
        f"{totals['company']} with a second file that matters, {totals['compiled']} of them compiled, "
        f"{totals['different']} different"
    )
    for key in sorted(key for key in totals if key.startswith("page ")):
        print(f"compiled code differs as a page says, {totals[key]} modules: {key.removeprefix('page ')}")
    codes = sorted({key.rpartition(" ")[2] for key in totals if " " in key and not key.startswith("page ")})
    print(f"{'rule':<8}{'applied':>10}{'in cases':>10}{'declined':>10}")
    for code in codes:
        row = (totals[f"{kind} {code}"] for kind in ("applied", "cases", "declined"))
        print(f"{code:<8}" + "".join(f"{number:>10}" for number in itertools.islice(row, 3)))


if __name__ == "__main__":
    sys.exit(main())
