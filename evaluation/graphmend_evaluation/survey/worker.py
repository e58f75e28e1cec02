"""One arm of the survey: a process that has imported torch and transformers once, and a fork of it for each type.

    python -m graphmend_evaluation.survey.worker --root WORKTREE --out FOLDER [--against FOLDER] TYPE...

Each line of `FOLDER/results.jsonl` is one type's `Row`. A type that has a row is left out, so that an interrupted run
goes on where it ended. With `--record` they are recorded and not measured: `FOLDER/TYPE/trace.json` is the trace, of
the models that `--against` names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from graphmend_evaluation.compilations import BACKENDS, COUNTING
from graphmend_evaluation.survey.row import MODES, Row, append, read
from graphmend_evaluation.worktree import add_to_path, check_origin

_PACKAGE = "transformers:"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the types, one after another."""
    options = _parser().parse_args(arguments)
    root, out = options.root.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    add_to_path(root, _PACKAGE)
    _import()
    check_origin(root, _PACKAGE)
    known = {name: (name.partition(":")[0],) for name in options.types} if options.classes else _classes_of_types()
    done = {row.type for row in read(out / "results.jsonl")}
    earlier = {} if options.against is None else {row.type: row for row in read(options.against / "results.jsonl")}
    for name in options.types or known:
        if name in done or (options.against is not None and name not in earlier):
            continue
        measure = _measurement(root, out, options, known[name], earlier.get(name))
        row = in_fork(name, measure, out, options.timeout)
        append(out / "results.jsonl", row)
        print(row.line(), flush=True)
    return 0


def _classes_of_types() -> dict[str, tuple[str, ...]]:
    from graphmend_evaluation.survey.types import model_types

    return {each.name: each.classes for each in model_types()}


def _measurement(
    root: Path, out: Path, options: argparse.Namespace, classes: Sequence[str], earlier: Row | None
) -> Callable[[str], Row]:
    def measure(name: str) -> Row:
        from graphmend_evaluation.survey.measuring import SurveyRun
        from graphmend_evaluation.survey.recording import RecordingSurvey

        mode = "train" if name.endswith(":train") else options.mode
        eager_only = options.eager_only
        kind, against = (RecordingSurvey, None) if options.record else (SurveyRun, options.against)
        arm = kind(root, out, against, options.calls, options.dtype, eager_only=eager_only, mode=mode)
        arm.backend = options.backend
        return arm.first(name, classes) if earlier is None else arm.second(earlier)

    return measure


def _import() -> None:
    """All that each type would import again, with streams as they are."""
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch._dynamo
        from transformers import GenerationMixin, PreTrainedModel  # noqa: F401 - these bring the rest

        import graphmend_evaluation.survey.recording  # noqa: F401

        # The first compilation imports as much again.
        torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
        torch._dynamo.reset()


def in_fork(name: str, measure: Callable[[str], Row], out: Path, timeout: float) -> Row:
    """What `measure` says of `name`, in a process that is ended after `timeout` seconds."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    answer = folder / "row.json"
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.monotonic()
    process = os.fork()
    if process == 0:
        _answer(lambda: measure(name), answer, folder)
    _lead_a_group(process)
    ended = _wait(process, started + timeout)
    seconds = round(time.monotonic() - started, 2)
    if ended is None:
        return Row(name, "", "timeout", f"no result after {timeout:g} s", seconds)
    if not answer.is_file():
        how = f"signal {os.WTERMSIG(ended)}" if os.WIFSIGNALED(ended) else f"exit code {os.WEXITSTATUS(ended)}"
        return Row(name, "", "crashed", f"ended with {how}", seconds)
    return Row.from_json({**json.loads(answer.read_text(encoding="utf-8")), "seconds": seconds})


def _wait(process: int, ends: float) -> int | None:
    """How the process ended, None when it was killed for its time."""
    pause = 0.01
    while True:
        found, ending = os.waitpid(process, os.WNOHANG)
        if found:
            return ending
        if time.monotonic() > ends:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)


def _lead_a_group(process: int) -> None:
    """So that what it starts ends with it. Both sides ask for it: neither knows which runs first."""
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(process, process)


def _answer(work: Callable[[], Row], answer: Path, folder: Path) -> None:
    try:
        _lead_a_group(0)
        with (folder / "streams.txt").open("wb") as streams:
            os.dup2(streams.fileno(), 1)
            os.dup2(streams.fileno(), 2)
        unfinished = answer.with_suffix(".part")
        unfinished.write_text(json.dumps(work().to_json()), encoding="utf-8")
        unfinished.replace(answer)
    finally:
        os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="graphmend_evaluation.survey.worker", description="One arm of the survey.")
    parser.add_argument("--root", type=Path, required=True, help="the worktree whose code is measured")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the rows")
    parser.add_argument("--against", type=Path, help="the folder of the first arm")
    parser.add_argument("--timeout", type=float, default=90.0, help="seconds for one type [default: 90]")
    parser.add_argument("--calls", type=int, default=1, help="calls that are compiled [default: 1]")
    parser.add_argument("--dtype", help="such as float16")
    parser.add_argument("--mode", choices=MODES, default="eval", help="what is measured [default: eval]")
    parser.add_argument("--backend", choices=BACKENDS, default=COUNTING, help="what compiles the graphs")
    parser.add_argument("--eager-only", action="store_true", help="compare eager results, and compile nothing")
    parser.add_argument("--record", action="store_true", help="record what a user would, and measure nothing")
    parser.add_argument("--classes", action="store_true", help="TYPE is `Class:eval` or `Class:train`")
    parser.add_argument("types", nargs="*", help="model types [default: all]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
