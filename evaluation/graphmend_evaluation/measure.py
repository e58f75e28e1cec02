"""One model in one worktree, measured: the child process that `isolation` starts.

    python -m graphmend_evaluation.measure --root WORKTREE --model package.module:factory --out FOLDER

`factory()` returns `(module, inputs)` or `(module, inputs, options)`. `inputs` is a tuple of arguments, a dict of
keyword arguments, or a list of those, for several calls of one module. `options` is a dict: `train` (True: train mode,
False: eval mode; by default the module stays as the factory returned it), `gradients` (True: backward after each call,
default no_grad).

`FOLDER/result.json` is one `results.ModelMeasurement`, written when everything is done; a process that dies leaves
none. `state.pt`, `inputs.pt`, `eager.pt` and `compiled.pt` serve a later run with `--against`. Exit code 0 when there
is a result, whatever it says.

Eager and compiled calls run in a fork each: what one leaves behind (caches of messages shown once, random numbers,
attributes of classes) does not reach the other, and the repository is imported only once.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphmend_evaluation import child_process
from graphmend_evaluation.results import CallResult, Comparison, Counts, ModelMeasurement, Status, from_json, to_json
from graphmend_evaluation.worktree import LoadError, add_to_path, own_files, own_versions

if TYPE_CHECKING:
    from graphmend_evaluation.loading import Factory


class RunError(Exception):
    """A measurement that cannot be made, and how it ended. The text is one line."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class ModelRun:
    """One model's measurement in the making. `stage` is what a reader of a killed process's remains wants to know."""

    def __init__(self, root: Path, model: str, folder: Path, against: Path | None) -> None:
        self.root = root
        self.model = model
        self.folder = folder
        self.against = against

    def measure(self) -> ModelMeasurement:
        """Import, run in eager mode, run compiled, compare."""
        started = time.monotonic()
        try:
            measured = self._measure()
        except RunError as error:
            measured = ModelMeasurement(self.model, error.status, str(error), 0.0)
        return replace(measured, seconds=round(time.monotonic() - started, 3))

    def _measure(self) -> ModelMeasurement:
        factory = self._factory()
        self._stage("running in eager mode")
        versions, files = self._fork(lambda: self._eager(factory))
        self._stage("compiling")
        counts = from_json(Counts, self._fork(lambda: self._compiled(factory)))
        self._stage("comparing")
        comparison = from_json(Comparison, self._fork(lambda: to_json(self._comparison())))
        return ModelMeasurement(
            model=self.model,
            status=Status.OK,
            message="",
            seconds=0.0,
            counts=counts,
            calls=tuple(from_json(CallResult, call) for call in self._fork(lambda: to_json(self._calls()))),
            against_base=comparison if self.against is not None else None,
            versions=tuple((str(name), str(version)) for name, version in versions),
            files=tuple(map(str, files)),
        )

    def _factory(self) -> Factory:
        self._stage("importing")
        add_to_path(self.root, self.model)
        child_process.import_torch()
        import torch

        from graphmend_evaluation import runs  # noqa: F401  # here, so that no fork does it anew
        from graphmend_evaluation.loading import load_factory

        torch.set_num_threads(1)
        try:
            return load_factory(self.root, self.model)
        except LoadError as error:
            raise RunError(Status.FAILED, str(error)) from error

    def _eager(self, factory: Factory) -> Any:
        from graphmend_evaluation import runs

        runs.eager_run(factory, self.folder, self.against)
        return own_versions(self.root), own_files(self.root)

    def _compiled(self, factory: Factory) -> Any:
        from graphmend_evaluation import runs

        return to_json(runs.compiled_run(factory, self.folder, self.against or self.folder))

    def _calls(self) -> tuple[CallResult, ...]:
        from graphmend_evaluation import runs

        eager, compiled = runs.load(self.folder / "eager.pt"), runs.load(self.folder / "compiled.pt")
        if all(call.error is not None for call in eager):
            raise LoadError(f"the model raises in eager mode: {child_process.one_line(str(eager[0].error))}")
        return tuple(
            CallResult(
                eager_error=plain.error,
                compiled_error=fast.error,
                compiled_difference=runs.compiled_difference(plain, fast),
                eager_messages=plain.messages,
                compiled_messages=fast.messages,
            )
            for plain, fast in zip(eager, compiled, strict=True)
        )

    def _comparison(self) -> Comparison:
        from graphmend_evaluation import runs

        if self.against is None:
            return Comparison(())
        before = runs.load(self.against / "eager.pt")
        return Comparison(runs.eager_differences(before, runs.load(self.folder / "eager.pt")))

    def _fork(self, work: Callable[[], Any]) -> Any:
        """What `work` returns in a fork of this process, by way of JSON.

        Raises `RunError` when it cannot, or when the fork dies.
        """
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            child_process.die_with_parent()
            _answer(work, answer)
        _, ending = os.waitpid(process, 0)
        if not answer.is_file():
            raise RunError(Status.CRASHED, f"{_death(ending)}, while {self._last_stage}")
        found = json.loads(answer.read_text(encoding="utf-8"))
        if "failed" in found:
            raise RunError(Status.FAILED, found["failed"])
        return found["returned"]

    def _stage(self, text: str) -> None:
        self._last_stage = text
        (self.folder / "stage").write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write `result.json`."""
    options = _parser().parse_args(arguments)
    child_process.begin(options)
    arm = ModelRun(options.root.resolve(), options.model, options.out.resolve(), options.against)
    child_process.write_json(arm.folder / "result.json", to_json(arm.measure()), indent=1)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = child_process.parser("measure", "Measure one model.")
    parser.add_argument("--against", type=Path, help="the folder of an earlier measurement to compare with")
    return parser


def _answer(work: Callable[[], Any], path: Path) -> NoReturn:
    """Write what `work` returns, or why it cannot, and end this process whatever happens."""
    try:
        child_process.write_json(path, child_process.outcome(work))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _death(ending: int) -> str:
    if os.WIFSIGNALED(ending):
        return f"ended by {signal.Signals(os.WTERMSIG(ending)).name}"
    return f"ended with exit code {os.WEXITSTATUS(ending)} and no result"


if __name__ == "__main__":
    sys.exit(main())
