"""The hostile modules of `tests/adversarial` through `fix`: `python evaluation/benchmarks/adversarial.py`.

Each case is a project on disk that is fixed with default settings. Both versions run in processes of their own (forks
of one that has loaded torch), in eager mode and compiled, with and without gradients. Prints every difference with the
rules that were applied, fixes that remove no break, and a table by class. Exit code 1 when eager mode can tell the
difference, or compiled code is worse in a way that no page tells of.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import logging
import os
import pickle
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "evaluation")]

from benchmarks.forks import Fork, in_turn  # noqa: E402

_HARNESS: list[str] = []
EAGER, SCRIPT, EXPORT, DYNAMIC = "eager mode", "script", "export", "dynamic"


@dataclass(frozen=True)
class Difference:
    """One thing that is not as before. `way` is eager, script, problem, breaks, or a backend; `page` explains it."""

    way: str
    what: str
    text: str
    page: str = ""


@dataclass
class Result:
    """What became of one case."""

    title: str
    group: str
    codes: tuple[str, ...] = ()
    changed: bool = False
    reasons: tuple[str, ...] = ()
    differences: list[Difference] = field(default_factory=list)
    breaks: tuple[int, int] | None = None
    graphs: tuple[int, int] | None = None
    diff: str = ""


def main(arguments: list[str] | None = None) -> int:
    """Run the cases, print what differs, return the exit code."""
    options = _options(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    _warm(options.backend)
    from tests.adversarial.case import all_cases

    _HARNESS.append(_harness())
    cases = [case for case in all_cases() if re.search(options.only, case.title)]
    first, _, last = options.cases.partition(":")
    cases = cases[int(first or 0) : int(last) if last else None]
    if options.unannotated:
        cases = [replace(case, files=_unannotated(case.files)) for case in cases]
    began = time.perf_counter()
    options.cache.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    for result in in_turn(options.jobs, judge, cases, options.backend, options.cache, options.opaque):
        results.append(result)
        if options.json is not None:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result)) + "\n")
        if result.differences:
            print(described(result, diff=options.diff), flush=True)
    print(table(results))
    print(f"{len(results)} modules in {time.perf_counter() - began:.0f} s")
    return int(any(not one.page and one.way != "breaks" for result in results for one in result.differences))


def _unannotated(files: Mapping[str, str]) -> dict[str, str]:
    return {path: re.sub(r"\b(\w+): torch\.\w*Tensor\b", r"\1", text) for path, text in files.items()}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="regular expression for `class: name`")
    parser.add_argument("--cases", default="", help="a slice of these cases, such as 400:600")
    parser.add_argument("--unannotated", action="store_true", help="leave the annotations of tensors out")
    parser.add_argument("--opaque", action="store_true", help="fix with --opaque")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--backend",
        action="append",
        help="eager, aot_eager, inductor, dynamic, export; again for another; none: eager mode alone",
    )
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "graphmend-adversarial")
    parser.add_argument("--diff", action="store_true", help="show what the fix changed")
    parser.add_argument("--json", type=Path, help="append all results to this file, one line each")
    found = parser.parse_args(arguments)
    found.backend = [name for name in found.backend or ["aot_eager"] if name != "none"]
    return found


def _warm(backends: Sequence[str]) -> None:
    """Load what every case needs, so that forks have it."""
    import torch
    import torch._dynamo

    import tests.adversarial.running  # noqa: F401
    from graphmend_codemod.engine import api  # noqa: F401

    torch.set_num_threads(1)
    for name in ("torch._dynamo", "torch._subclasses", "torch.fx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for backend in {"eager", *backends} - {EXPORT, DYNAMIC}:
        layer = torch.nn.Linear(2, 2)
        torch.compile(layer, backend=backend)(torch.zeros(1, 2))
        torch._dynamo.reset()


# ---- one case ----


def judge(case: Any, backends: Sequence[str], cache: Path, opaque: bool = False) -> Result:
    """Fix a case and compare it with what it was."""
    from tests.adversarial import running

    result = Result(case.title, case.group)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        before, after = root / "before" / "project", root / "after" / "project"
        running.write(case.files, before)
        fixed = running.fix(case.files, after, opaque=opaque)
        result.codes, result.reasons = fixed.codes, fixed.reasons
        result.changed = dict(fixed.files) != dict(case.files)
        result.diff = _diff(case.files, fixed.files)
        result.differences += [Difference("problem", "problem", text) for text in fixed.problems]
        if not result.changed:
            return result
        again = running.fix(fixed.files, root / "again" / "project", opaque=opaque)
        if again.files != fixed.files:
            result.differences.append(Difference("problem", "fixing again changes it", str(again.codes)))
        runs = _Runs(case, fixed.files, before, after, cache)
        result.differences += _eager(runs)
        for backend in backends:
            found = _exported(runs) if backend == EXPORT else _compiled(runs, backend, result)
            result.differences += found
    return result


@dataclass(frozen=True)
class _Runs:
    """Runs of both versions, from memory where the same text ran before."""

    case: Any
    fixed: Any
    before: Path
    after: Path
    cache: Path

    def of(self, folder: Path, way: str) -> Any:
        files = self.case.files if folder == self.before else self.fixed
        case = self.case
        known = [sorted(files.items()), case.inputs, case.outside, case.training, case.varied, way, _HARNESS[0]]
        path = self.cache / hashlib.sha256(repr(known).encode()).hexdigest()
        if path.is_file():
            return pickle.loads(path.read_bytes())
        try:
            value = Fork(_run, case, folder, way).result()
        except RuntimeError as error:
            return str(error)
        path.with_suffix(f".{os.getpid()}").write_bytes(pickle.dumps(value))
        path.with_suffix(f".{os.getpid()}").replace(path)
        return value


def _harness() -> str:
    """What a remembered run depends on, besides the case: torch, and how it is run."""
    import torch

    from tests.adversarial import running
    from tests.tools import observe

    texts = [inspect.getsource(part) for part in (running, observe, _run_compiled, _wrapping)]
    return torch.__version__ + hashlib.sha256("".join(texts).encode()).hexdigest()


def _run(case: Any, folder: Path, way: str) -> Any:
    """Everything that one version does in one way, in this process."""
    from tests.adversarial import running

    if way == SCRIPT:
        return running.without_folder(running.scripted(case, folder), folder)
    if way == EXPORT:
        return running.without_folder(running.exported(case, folder), folder)
    if way == EAGER:
        scenarios = running.eager_scenarios(case)
        return {str(each): running.neutral(running.observed(case, folder, each), folder) for each in scenarios}
    return _run_compiled(case, folder, way)


def _run_compiled(case: Any, folder: Path, backend: str) -> Any:
    from torch._dynamo import guards

    from graphmend_evaluation.counting import BreakRecorder
    from tests.adversarial import running

    found = {}
    graphs = breaks = 0
    sites: set[str] = set()
    untimed = mock.patch.object(guards, "profile_guard_manager", create=True, return_value=0.0)
    for scenario in running.compiled_scenarios(case):
        recorder = BreakRecorder(folder)
        first: list[Any] = []
        with untimed, recorder.recording(len(case.inputs)):
            compiled = running.observed(case, folder, scenario, _wrapping(recorder, backend, first))
        found[str(scenario)] = running.neutral(compiled, folder)
        for counts in first[:1]:
            graphs += sum(ops > 0 for ops in counts.ops_per_graph)
            breaks += counts.break_events + len(counts.skipped_frames)
            sites |= {f"{site.path}:{site.line} {site.source}: {site.kind}" for site in counts.sites}
            sites |= {f"skipped {frame.function}: {frame.reason}" for frame in counts.skipped_frames}
    return found, graphs, breaks, sorted(sites)


def _wrapping(recorder: Any, backend: str, first: list[Any]) -> Callable[[Any], Any]:
    """Compiles a module; what the first call that returned took goes into `first`.

    Later calls are there to leave the compile path, and then break as before.
    """
    import torch
    from torch._dynamo.backends.registry import lookup_backend

    inner = lookup_backend("aot_eager" if backend == DYNAMIC else backend)

    def counted(graph: Any, inputs: Any) -> Any:
        recorder.backend(graph, inputs)
        return inner(graph, inputs)

    def wrap(made: Any) -> Any:
        compiled: Any = torch.compile(made, backend=counted, dynamic=backend == DYNAMIC)

        def call(*args: Any, **kwargs: Any) -> Any:
            result = compiled(*args, **kwargs)
            first.append(None if first else recorder.counts())
            return result

        return call

    return wrap


def _eager(runs: _Runs) -> Iterator[Difference]:
    from tests.tools.behaviour import compared

    old, new = runs.of(runs.before, EAGER), runs.of(runs.after, EAGER)
    if isinstance(old, str) or isinstance(new, str):
        if not (isinstance(old, str) and isinstance(new, str)):
            yield Difference(EAGER, "run", f"before: {_short(old)}; after: {_short(new)}")
    else:
        for scenario, observations in old.items():
            for number, pair in enumerate(zip(observations, new[scenario], strict=True), 1):
                for text in compared(*pair, f"{scenario}, call {number}"):
                    yield Difference(EAGER, text.partition(f"call {number}: ")[2].partition(":")[0], text)
    if not any("jit" in text for text in (*runs.case.files.values(), runs.case.outside)):
        return
    first, second = runs.of(runs.before, SCRIPT), runs.of(runs.after, SCRIPT)
    if first != second and not (isinstance(first, tuple) and first[0] != "scripted"):
        yield Difference(SCRIPT, "torch.jit.script", f"{first!s:.200} became {second!s:.200}")


def _exported(runs: _Runs) -> Iterator[Difference]:
    """`torch.export`, which is compiling as well: what could be exported must still be, with the same results."""
    before, after = runs.of(runs.before, EXPORT), runs.of(runs.after, EXPORT)
    if before != after and isinstance(before, tuple) and before[0] == "exported":
        yield Difference(EXPORT, "torch.export", f"{before!s:.200} became {after!s:.200}")


def _short(value: Any) -> str:
    """The last line of an error's text, the beginning of anything else."""
    return value.strip().rpartition("\n")[2][:300] if isinstance(value, str) else f"{value!s:.100}"


def _compiled(runs: _Runs, backend: str, result: Result) -> Iterator[Difference]:
    from tests.tools.compiled import compared
    from tests.tools.pages import kind_of

    eager = runs.of(runs.before, EAGER)
    old, new = runs.of(runs.before, backend), runs.of(runs.after, backend)
    if isinstance(new, str) or isinstance(eager, str):
        if not isinstance(old, str):
            yield Difference(backend, "run", f"{new!s:.300}")
        return
    if isinstance(old, str):
        return
    (old_calls, *old_counts), (new_calls, *new_counts) = old, new
    result.graphs, result.breaks = (old_counts[0], new_counts[0]), (old_counts[1], new_counts[1])
    if old_counts[1] < new_counts[1] or (0 < old_counts[1] == new_counts[1] and new_counts[0] >= old_counts[0]):
        text = f"breaks {old_counts[1]} to {new_counts[1]}, graphs {old_counts[0]} to {new_counts[0]}"
        yield Difference("breaks", backend, f"{text}; still: {'; '.join(new_counts[2])[:300]}")
    elif old_counts[0] and not new_counts[0] and new_counts[1]:
        # Without a break and without a graph there is nothing to compute.
        yield Difference(backend, "capture", f"nothing compiled, {old_counts[0]} graphs before")
    for scenario, expected in eager.items():
        if scenario not in new_calls:
            continue
        calls = zip(expected, old_calls[scenario], new_calls[scenario], strict=True)
        for number, (want, was, got) in enumerate(calls, 1):
            where = f"{backend}, {scenario}, call {number}"
            if next(compared(want, was, where, state=True), None) is None:
                for text in compared(want, got, where, state=True):
                    yield _explained(backend, kind_of(text, where), text, result.codes)
                if _another_exception(want, was, got):
                    text = f"{where}: {want.outcome[1][:2]} became {str(got.outcome[1][:2])[:200]}"
                    yield _explained(backend, "exception", text, result.codes)
            said, says = [event.what for event in was.events], [event.what for event in got.events]
            if said != says:
                text = f"{where}: messages {said!s:.300} became {says!s:.300}"
                yield _explained(backend, "messages", text, result.codes)


def _another_exception(want: Any, was: Any, got: Any) -> bool:
    if not want.outcome[0] == was.outcome[0] == got.outcome[0] == "raised":
        return False
    return bool(want.outcome[1][:2] == was.outcome[1][:2] != got.outcome[1][:2])


def _explained(backend: str, kind: str, text: str, codes: Sequence[str]) -> Difference:
    """The difference with the sentence of a rule's contract that tells of it."""
    from tests.tools.pages import sentence

    return Difference(backend, kind, text, sentence(kind, codes, text))


def _diff(before: Any, after: Any) -> str:
    import difflib

    lines: list[str] = []
    for path in before:
        old, new = before[path].splitlines(), after[path].splitlines()
        lines += difflib.unified_diff(old, new, path, path, lineterm="", n=4)
    return "\n".join(lines)


# ---- what is printed ----


def described(result: Result, *, diff: bool, most: int = 3) -> str:
    """A case with what differs, each kind once."""
    lines = [f"{result.title} [{' '.join(result.codes)}]"]
    shown: Counter[tuple[str, str]] = Counter()
    for one in result.differences:
        shown[one.way, one.what] += 1
        if shown[one.way, one.what] == 1 and len(lines) <= most * 2:
            page = f"  ({one.page})" if one.page else ""
            lines.append(f"  {one.way}, {one.what}: {one.text[:500]}{page}")
    if diff:
        lines += [f"    {line}" for line in result.diff.splitlines()]
    return "\n".join(lines)


def table(results: Sequence[Result]) -> str:
    """Classes with what was found in each."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        row = rows[result.group]
        row["modules"] += 1
        row["changed"] += result.changed
        ways = {("explained" if one.page else one.way) for one in result.differences}
        compiled = ways - {EAGER, "script", "problem", "breaks", "explained"}
        row["eager"] += bool(ways & {EAGER, "script", "problem"})
        row["compiled"] += bool(compiled)
        row["as the page says"] += "explained" in ways and not compiled
        row["no fewer breaks"] += "breaks" in ways
    names = ("modules", "changed", "eager", "compiled", "as the page says", "no fewer breaks")
    total: Counter[str] = sum(rows.values(), Counter())
    lines = [f"{'class':<32}" + "".join(f"{name:>18}" for name in names)]
    for group, row in [*sorted(rows.items()), ("all", total)]:
        lines.append(f"{group:<32}" + "".join(f"{row[name]:>18}" for name in names))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
