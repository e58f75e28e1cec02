"""What fixes cost compiled code: `python evaluation/benchmarks/cost.py [--rules [GM101,...]] [--experts] [--types]`.

Without a group all are measured. What is measured stays in the work folder, and is measured again only when the fixed
source is another one; the page and the numbers are written from all of it, also after an interruption. `--losers`
measures types that miss a target once more, with one rule at a time. Exit codes: 0 all targets kept, 1 one is missed,
2 it could not be done.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import cost_page, outcome
from benchmarks.commands import ROOT
from benchmarks.cost_arms import ArmError, Arms
from benchmarks.cost_cases import (
    EXPERTS,
    IN_BLOCK,
    RULES,
    TYPES,
    Case,
    Phase,
    differs_in_survey,
    expert_cases,
    rule_cases,
    type_cases,
)
from benchmarks.cost_runs import Options, Partners, Record, append, read

from graphmend_codemod import __version__
from graphmend_evaluation.isolation import torch_is_installed
from graphmend_evaluation.speed.turns import Turns

_MEASURED = "measured.jsonl"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is wanted and not known, write the page and the numbers."""
    options = _parser().parse_args(arguments)
    if not torch_is_installed():
        print("cost: torch is not installed; install graphmend with its extra: graphmend[eval]", file=sys.stderr)
        return 2
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        if not options.page_only:
            _measure(options)
    except ArmError as error:
        print(f"cost: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cost: interrupted; the same command goes on", file=sys.stderr)
    return _write(options)


def _measure(options: argparse.Namespace) -> None:
    arms = Arms(options.work.resolve(), jobs=options.jobs, target_torch=options.target_torch)
    with _Pool(options) as pool:
        cases = list(_cases(options))
        if options.together > 1:
            _measure_together(cases, arms, options)
            return
        for case in cases:
            _one(case, arms, options, pool)
        if options.losers:
            known = read(options.work / _MEASURED)
            judged = cost_page.judged([record for record in known.values() if not record.select])
            missed = {record.case for record in judged if cost_page.misses(record)}
            for case in type_cases(_names(options.types), options.survey):
                if case.id in missed:
                    for rule in arms.of(case, unsafe=options.unsafe_fixes).fixes.rules:
                        _one(case, arms, options, pool, (rule,))


def _measure_together(cases: Sequence[Case], arms: Arms, options: argparse.Namespace) -> None:
    """Several cases in threads, each with processes of its own: they compile side by side, and each is timed alone."""
    turns, fixing = Turns(), threading.Lock()

    def measure(number: int) -> None:
        with _Pool(options, f"-{number}", turns) as pool:
            with fixing, contextlib.suppress(ArmError):  # one arm serves all cases of a package
                arms.of(cases[number], unsafe=options.unsafe_fixes)
            _one(cases[number], arms, options, pool)

    with ThreadPoolExecutor(options.together) as threads:
        for _ in threads.map(measure, range(len(cases))):
            pass


class _Pool:
    """Child processes: one pair for all examples of rules, a new one for each case that imports a package."""

    def __init__(self, options: argparse.Namespace, name: str = "", turns: Turns | None = None) -> None:
        self._options = options
        self._turns = turns or Turns()
        self._folder: Path = options.work.resolve() / f"running-{os.getpid()}{name}"
        self._stack = contextlib.ExitStack()
        self._rules: Partners | None = None

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def partners(self, group: str) -> Iterator[Partners]:
        """A pair for a case of this group."""
        if group != RULES:
            with Partners(self._folder, self.options(group)) as own:
                yield own
            return
        if self._rules is None:
            folder = self._folder.with_name(f"{self._folder.name}-rules")
            self._rules = self._stack.enter_context(Partners(folder, self.options(group)))
        yield self._rules

    def options(self, group: str) -> Options:
        """How often and for how long cases of this group are measured."""
        repeats = self._options.repeats or (3 if group == RULES else 1)
        return Options(repeats, timeout=self._options.timeout, device=_device(self._options), turns=self._turns)


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    everything = options.rules is None and options.experts is None and options.types is None
    if everything or options.experts is not None:
        yield from expert_cases(_names(options.experts))
    if everything or options.rules is not None:
        yield from rule_cases(_names(options.rules))
    if everything or options.types is not None:
        yield from type_cases(_names(options.types), options.survey)


def _one(case: Case, arms: Arms, options: argparse.Namespace, pool: _Pool, select: Sequence[str] = ()) -> None:
    """Measure what is missing of one case."""
    try:
        pair = arms.of(case, select, unsafe=options.unsafe_fixes)
    except ArmError as error:
        print(f"{case.id}: {error}", flush=True)
        return
    if not pair.fixes.files and case.group == TYPES and case.name in differs_in_survey(options.survey):
        with pool.partners(case.group) as partners:
            more = partners.imported(case, pair.before)
        pair = arms.of(case, select, unsafe=options.unsafe_fixes, imported=more)
    if not pair.fixes.files:
        if case.group != TYPES or options.types:
            print(f"{case.id}: no fix changes its files", flush=True)
        return
    known = read(options.work / _MEASURED)
    way = ("--unsafe-fixes", *select) if options.unsafe_fixes and case.group != RULES else tuple(select)
    waiting = []
    for phase in case.phases if not options.quick else [each for each in case.phases if not each.more]:
        record = known.get((case.id, phase.name, way, pool.options(case.group).device))
        if record is None or record.digest != pair.digest or (record.error and options.retry):
            waiting.append(phase)
    for phases in ([each for each in waiting if not each.block], [each for each in waiting if each.block]):
        wanted = [each for each in phases if not each.block or _misses_alone(case, each, options)]
        if not wanted:
            continue
        with pool.partners(case.group) as partners:
            for found in partners.measure(case, wanted, pair):
                record = replace(found, select=way)
                append(options.work / _MEASURED, record)
                print(cost_page.line(record), flush=True)


def _misses_alone(case: Case, block: Phase, options: argparse.Namespace) -> bool:
    """True if a case misses a target by itself: it is measured in a block as well."""
    alone = block.name.removesuffix(IN_BLOCK)
    known = read(options.work / _MEASURED).values()
    return any(cost_page.misses(each) for each in known if each.case == case.id and each.phase == alone)


def _write(options: argparse.Namespace) -> int:
    """The page and the numbers, of everything that is known. The exit code."""
    records = list(read(options.work / _MEASURED).values())
    machine = outcome.machine(outcome.load())
    about = {
        "date": machine.date,
        "machine": f"{machine.processor}, {machine.cores} cores, {machine.system}",
        "python": machine.python,
        "graphmend": f"{__version__} ({outcome.commit_of(ROOT)})",
        **cost_page.versions(),
    }
    options.results.mkdir(parents=True, exist_ok=True)
    raw = options.results / f"{machine.date}-cost.json"
    found = {"about": about, "records": [asdict(record) for record in _ordered(records)]}
    raw.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    shown = os.path.relpath(raw, ROOT) if raw.is_relative_to(ROOT) else raw.name
    options.page.write_text(cost_page.render(_ordered(records), about, shown), encoding="utf-8")
    print(f"The page is {options.page}")
    judged = cost_page.judged([record for record in records if not record.select])
    return 1 if any(cost_page.misses(record) for record in judged) else 0


def _ordered(records: Sequence[Record]) -> list[Record]:
    groups = (EXPERTS, RULES, TYPES)
    return sorted(records, key=lambda each: (groups.index(each.case.partition("/")[0]), each.case, each.select))


def _names(text: str | None) -> frozenset[str] | None:
    """Names of a list with commas; None for all."""
    return frozenset(name.strip() for name in text.split(",") if name.strip()) if text else None


def _device(options: argparse.Namespace) -> str:
    if options.device != "auto":
        return str(options.device)
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cost.py", description="What fixes cost compiled code.")
    parser.add_argument("--rules", nargs="?", const="", metavar="CODES", help="examples of the rules' pages")
    parser.add_argument("--experts", nargs="?", const="", metavar="NAMES", help="expert blocks of transformers")
    parser.add_argument("--types", nargs="?", const="", metavar="TYPES", help="small models that a fix changes")
    parser.add_argument("--losers", action="store_true", help="types that miss a target, with one rule at a time")
    parser.add_argument("--unsafe-fixes", action="store_true", help="with unsafe fixes, for experts and types")
    parser.add_argument("--quick", action="store_true", help="of experts only prefill, one token, and prefill backward")
    parser.add_argument("--repeats", type=int, help="cold starts an arm [default: 3 for rules, else 1]")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="workers that fix the package [default: 1]")
    parser.add_argument("--target-torch", help="the oldest torch that fixed code is for, such as 2.11 [default: none]")
    parser.add_argument("--together", type=int, default=1, help="cases that compile at a time; each is timed alone")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one answer [default: 900]")
    parser.add_argument("--work", type=Path, default=ROOT / ".cost", help="a folder of its own [default: .cost]")
    parser.add_argument("--survey", type=Path, default=ROOT / "evaluation" / "survey" / "2026-11-21.json")
    parser.add_argument("--results", type=Path, default=ROOT / "evaluation" / "benchmarks" / "results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "cost.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
