"""Measure one model type: make it small, run it in eager mode, compile it, compare it with the first arm."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphmend_evaluation import runs
from graphmend_evaluation.compilations import COUNTING, INDUCTOR
from graphmend_evaluation.counting import BreakRecorder, first_line, strict_error
from graphmend_evaluation.huggingface.decoding import compiled_form
from graphmend_evaluation.huggingface.facts import Recipe
from graphmend_evaluation.huggingface.inputs import Plan
from graphmend_evaluation.huggingface.tiny import Choice, TinyModel, decoding, dtype_named, in_training, tiny_model
from graphmend_evaluation.loading import Factory, Model, seed
from graphmend_evaluation.messages import listening
from graphmend_evaluation.results import Counts
from graphmend_evaluation.survey.row import Row
from graphmend_evaluation.survey.types import find_class
from graphmend_evaluation.worktree import LoadError

MEMORY_BYTES = 16 * 2**30
MOST_CLASSES = 3
DECODING = ("generate", "step")


class Measuring:
    """Measures one model in a folder of code: eager mode first, compared with the first arm's, then compiled."""

    backend = COUNTING
    """What compiles the graphs: nothing, so that they run in eager mode, or `inductor`."""

    def __init__(self, root: Path, out: Path, against: Path | None, calls: int, *, eager_only: bool = False) -> None:
        self.root = root
        self.out = out
        self.against = against
        self.calls = calls
        self.eager_only = eager_only

    def measured(self, name: str, class_name: str, factory: Factory, choice: dict[str, Any] | None = None) -> Row:
        """The row of one model. What it raises is the row's message."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        started = time.monotonic()
        try:
            eager = self._eager(factory, self.out / name)
            differences = self._differences(name, eager)
            counts, compiled = (None, None) if self.eager_only else self._compiled(factory, eager)
        except Exception as error:  # the package's code may raise anything; it costs its own row
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            return Row(name, class_name, "failed", message, time.monotonic() - started, choice)
        return Row(name, class_name, "ok", "", 0.0, choice, counts, compiled, differences)

    def _eager(self, factory: Factory, folder: Path) -> list[runs.Observed]:
        """In a fork, so that messages that are shown once are shown again to the compiled run."""
        folder.mkdir(parents=True, exist_ok=True)
        target, failure = folder / "eager.pt", folder / "eager.error"
        target.unlink(missing_ok=True)
        failure.write_text("the process that ran it in eager mode died", encoding="utf-8")

        def run() -> None:
            try:
                model = factory.make()
                runs.save(runs.observe(model, model.target, self.root), target)
            except Exception as error:
                failure.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")

        forked(run)
        if not target.is_file():
            raise RuntimeError(f"no result in eager mode: {failure.read_text(encoding='utf-8')}")
        return runs.load(target)

    def _differences(self, name: str, eager: list[runs.Observed]) -> tuple[str, ...]:
        if self.against is None:
            return ()
        return runs.eager_differences(runs.load(self.against / name / "eager.pt"), eager)

    def _compiled(self, factory: Factory, eager: list[runs.Observed]) -> tuple[Counts, str | None]:
        model = self._few_calls(factory.make())
        recorder = BreakRecorder(self.root)
        with recorder.recording(len(model.calls)), _eager_random_numbers(self.backend):
            backend = recorder.inductor if self.backend == INDUCTOR else recorder.backend
            compiled = compiled_form(model.target, backend=backend, dynamic=False)
            observed = runs.observe(model, compiled, self.root)
        counts = recorder.counts()
        if counts.break_events == 0 and not counts.skipped_frames:
            again = self._few_calls(factory.make())
            with runs.modes(again), listening(self.root):
                seed()
                counts = recorder.counts(strict_error(again.target, again.calls, compiled_form))
        problems = [
            new.error if old.error is None and new.error is not None else runs.compiled_difference(old, new)
            for old, new in zip(eager, observed, strict=False)
        ]
        return counts, next((first_line(problem) for problem in problems if problem is not None), None)

    def _few_calls(self, model: Model) -> Model:
        return Model(model.target, model.calls[: self.calls], model.gradients)


class SurveyRun(Measuring):
    """One arm of the survey: where its code is, where its results go, and with what it is compared."""

    def __init__(
        self,
        root: Path,
        out: Path,
        against: Path | None,
        calls: int,
        dtype: str | None,
        *,
        eager_only: bool = False,
        mode: str = "eval",
    ) -> None:
        super().__init__(root, out, against, calls, eager_only=eager_only)
        self.dtype = None if dtype is None else dtype_named(dtype)
        self.train = mode == "train"
        self.decode = mode if mode in DECODING else None

    def first(self, name: str, classes: Sequence[str]) -> Row:
        """The first of `classes` that can be made small and called."""
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        reasons = []
        for class_name in classes[:MOST_CLASSES]:
            try:
                factory = tiny_model(find_class(class_name), self.dtype)
                factory = in_training(factory) if self.train else factory
                factory = factory if self.decode is None else decoding(factory, self.decode)
            except LoadError as error:
                reasons.append(str(error))
            except (ImportError, AttributeError, RuntimeError) as error:  # what a lazy import of the package raises
                reasons.append(f"{class_name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
            else:
                return self._measured(name, class_name, factory)
        return Row(name, classes[0], "unbuilt", reasons[0], 0.0)

    def second(self, earlier: Row) -> Row:
        """The same model as in the first arm."""
        if earlier.choice is None:
            return Row(earlier.type, earlier.model_class, earlier.status, earlier.message, 0.0)
        choice = choice_from_json(earlier.choice)
        factory = TinyModel(find_class(earlier.model_class), self.dtype, choice, self.train, self.decode)
        return self._measured(earlier.type, earlier.model_class, factory)

    def _measured(self, name: str, class_name: str, function: TinyModel) -> Row:
        choice = asdict(function.choice) | {"calls": list(function.choice.calls)}
        choice["plan"]["optional"] = sorted(function.choice.plan.optional)
        return self.measured(name, class_name, Factory(self.root, class_name, function), choice)


def _eager_random_numbers(backend: str) -> contextlib.AbstractContextManager[object]:
    """Let Inductor draw what eager mode draws, so that results with dropout can be compared."""
    if backend != INDUCTOR:
        return contextlib.nullcontext()
    from torch._inductor import config  # takes a second

    changed: contextlib.AbstractContextManager[object] = config.patch(fallback_random=True)
    return changed


def choice_from_json(data: dict[str, Any]) -> Choice:
    """The reverse of what a row holds."""
    plan = {**data["plan"], "optional": frozenset(data["plan"]["optional"])}
    return Choice(Recipe(**data["recipe"]), Plan(**plan), tuple(data["calls"]), data.get("labels", "none"))


def forked(work: Callable[[], None]) -> None:
    """Do `work` in a fork of this process, and wait for its end, whatever that is."""
    process = os.fork()
    if process == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(process, 0)
