"""Random programs through `fix`: `python evaluation/benchmarks/random_programs.py --seeds 0 1000`.

Each program is a module of a few families of code (`random_code/`), fixed with safe fixes, or with `--opaque`
with opaque ones, too. Both versions run in eager mode and compiled, without gradients and with them, on three or four
calls of one instance. Prints each difference that no page of a rule tells of, made small, how many programs each rule
changed, and what the original compiled does wrong as well. Exit code 1 when there is a difference of the fixes.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "evaluation")]

from benchmarks.forks import Fork  # noqa: E402
from benchmarks.random_checks import How, Verdict, described, judge  # noqa: E402

_CHUNK = 25


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds, print what differs and a table, return the exit code."""
    options = _options(arguments)
    os.environ.update(OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1")
    how = How(options.opaque, options.backend, tuple(options.rules), tuple(options.families))
    _warm(options.backend)
    began, totals, faults = time.perf_counter(), Counter[str](), 0
    for verdict in _verdicts(options, how):
        _count(verdict, totals)
        faults += bool(verdict.faults)
        if verdict.faults or verdict.noted:
            print(described(_small(verdict, how, options)), flush=True)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_row(verdict)) + "\n")
    print(_table(totals, time.perf_counter() - began))
    return 1 if faults else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 1000), metavar=("FIRST", "END"))
    parser.add_argument("--rules", nargs="*", default=(), help="compile only what these rules changed")
    parser.add_argument("--families", nargs="*", default=(), help="statements of these families alone")
    parser.add_argument("--opaque", action="store_true", help="apply fixes with opaque operators as well")
    parser.add_argument("--backend", default="aot_eager", choices=("aot_eager", "inductor"))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one program, on average of a chunk")
    parser.add_argument("--shrink", type=int, default=60, help="tries to make a program with a difference smaller")
    parser.add_argument("--json", type=Path, help="append a line for each program to this file")
    return parser.parse_args(arguments)


def _warm(backend: str) -> None:
    """Load what every program needs, so that forks have it."""
    import torch
    import torch._dynamo

    import tests.property.cases  # noqa: F401

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in ("torch._dynamo", "torch._subclasses", "torch.fx", "torch._functorch", "torch._inductor"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in {"eager", "aot_eager", backend}:
        layer = torch.nn.Linear(2, 2)
        torch.compile(layer, backend=name)(torch.zeros(1, 2)).sum().backward()
        torch._dynamo.reset()


def _verdicts(options: argparse.Namespace, how: How) -> Iterator[Verdict]:
    """Verdicts of chunks of seeds, each in a process; seeds of a chunk that ends or takes too long one by one."""
    first, end = options.seeds
    for start in range(first, end, _CHUNK):
        seeds = range(start, min(start + _CHUNK, end))
        try:
            yield from Fork(_chunk, seeds, how).result(options.limit * len(seeds) / 4)
        except RuntimeError:
            for seed in seeds:
                try:
                    yield from Fork(_chunk, [seed], how).result(options.limit)
                except RuntimeError as error:
                    print(f"seed {seed}: {str(error).strip().splitlines()[-1]}", flush=True)


def _chunk(seeds: Sequence[int], how: How) -> list[Verdict]:
    return [judge(seed, how) for seed in seeds]


def _small(verdict: Verdict, how: How, options: argparse.Namespace) -> Verdict:
    from benchmarks.random_shrink import shrunk

    if not (options.shrink and verdict.faults):
        return verdict
    try:
        found: Verdict = Fork(shrunk, verdict, how, options.shrink).result(options.limit * 6)
    except RuntimeError:
        return verdict
    return found


def _count(verdict: Verdict, totals: Counter[str]) -> None:
    totals["programs"] += 1
    totals["changed"] += verdict.changed
    totals["returned"] += verdict.changed and verdict.ran
    totals["different"] += bool(verdict.faults)
    totals["torch's own"] += any(one.kind.startswith("torch's own") for one in verdict.differences)
    if verdict.breaks is not None:
        totals["fewer breaks"] += verdict.breaks[1] < verdict.breaks[0]
        totals["no breaks left"] += verdict.breaks[1] == 0
    totals.update(f"rule {code}" for code in verdict.applied)
    totals.update(f"page {page}" for page in {one.page for one in verdict.differences if one.page})
    totals.update(f"kind {kind}" for kind in {one.kind for one in (*verdict.faults, *verdict.noted)})


def _row(verdict: Verdict) -> dict[str, object]:
    return {
        "seed": verdict.program.seed,
        "rules": dict(verdict.applied),
        "breaks": verdict.breaks,
        "differences": [[one.kind, one.text[:300], one.page] for one in verdict.differences],
    }


def _table(totals: Counter[str], seconds: float) -> str:
    plain = ("programs", "changed", "returned", "fewer breaks", "no breaks left", "different", "torch's own")
    lines = [", ".join(f"{totals[name]} {name}" for name in plain) + f", {seconds:.0f} s"]
    for word, title in (("kind", "different"), ("page", "as a page says"), ("rule", "changed by")):
        for key in sorted(key for key in totals if key.startswith(f"{word} ")):
            lines.append(f"{title} {key.removeprefix(f'{word} ')}: {totals[key]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
