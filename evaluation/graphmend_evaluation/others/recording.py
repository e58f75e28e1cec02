"""Record a model of a builder file, as a user does with `graphmend trace --calls`."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import torch

from graphmend_codemod.trace import document, watched
from graphmend_evaluation import runs
from graphmend_evaluation.counting import BreakRecorder, Call
from graphmend_evaluation.loading import Factory, Model
from graphmend_evaluation.others.measuring import MeasuringOthers
from graphmend_evaluation.others.result import TRACE
from graphmend_evaluation.results import Counts, from_json, to_json
from graphmend_evaluation.runs import Observed
from graphmend_evaluation.survey.measuring import forked
from graphmend_evaluation.survey.row import Row
from graphmend_evaluation.tracing.calls import Watcher
from graphmend_evaluation.tracing.live import trace

_VALUES = (bool, int, float, str, type(None))


class Recording(MeasuringOthers):
    """Makes the calls that a user would record, compiled and then without torch.compile, and writes the trace.

    Neither run finds what another one left in the process. `counts` of the row are those of the strict counter, which
    listens to the same run, and `compiled` says where the trace has other events.
    """

    def measured(self, name: str, class_name: str, factory: Factory, choice: dict[str, Any] | None = None) -> Row:
        """The row of one recorded model. What it raises is the row's message, and then there is no trace."""
        self._folder = self.out / name
        (self._folder / TRACE).unlink(missing_ok=True)
        return super().measured(name, class_name, as_a_user(factory), choice)

    def _compiled(self, factory: Factory, eager: list[Observed]) -> tuple[Counts, str | None]:
        self.calls = sum(1 for _ in itertools.takewhile(lambda each: each.error is None, eager))
        part, counted = self._folder / "trace.part", self._folder / "counts.json"
        counted.unlink(missing_ok=True)
        forked(lambda: self._record(factory, part, counted))
        if not counted.is_file():
            raise RuntimeError("the compiled run that is recorded died")
        recorded, counts = document.read(part), from_json(Counts, json.loads(counted.read_text(encoding="utf-8")))
        found = self._watched(factory, recorded)
        part.write_text(document.as_json(dataclasses.replace(recorded, watched=found)), encoding="utf-8")
        part.replace(self._folder / TRACE)
        events = sum(site.events for site in recorded.sites)
        return counts, None if events == counts.break_events else f"the trace has {events} events"

    def _record(self, factory: Factory, target: Path, counted: Path) -> None:
        model, counter = self._few_calls(factory.make()), BreakRecorder(self.root)
        with trace(target, root=self.root), counter.recording(len(model.calls)):
            runs.observe(model, torch.compile(model.target, backend=counter.backend), self.root)
        counted.write_text(json.dumps(to_json(counter.counts())), encoding="utf-8")

    def _watched(self, factory: Factory, recorded: document.Trace) -> tuple[document.Watched, ...]:
        """What the functions that broke held, without torch.compile."""
        model = self._few_calls(factory.make())
        watcher = Watcher(watched.places(recorded, self.root))
        watcher.start()
        try:
            runs.observe(model, model.target, self.root)
        finally:
            watcher.stop()
        return watched.of_records(watcher.records(), self.root)


def as_a_user(factory: Factory) -> Factory:
    """The model with the calls that a user would record: its first one twice, a second one where the builder has it,
    and last the first with twice as many rows, where all that it is given has as many."""

    def made() -> tuple[Any, list[Call], dict[str, bool]]:
        model: Model = factory.make()
        first = model.calls[0]
        calls = [first, *model.calls[:2], *_with_more_rows(first)]
        return model.target, calls, {"gradients": model.gradients}

    return Factory(factory.root, factory.name, made)


def _with_more_rows(call: Call) -> list[Call]:
    """The call with each row of its tensors twice; none where they differ in their number, or where there may be
    tensors in something else."""
    given = [*call.args, *(call.kwargs or {}).values()]
    rows = {each.shape[0] if each.dim() else 0 for each in given if isinstance(each, torch.Tensor)}
    if len(rows) != 1 or not all(rows) or not all(isinstance(each, (torch.Tensor, *_VALUES)) for each in given):
        return []

    def twice(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.cat([value.detach()] * 2).requires_grad_(value.requires_grad)

    return [Call(tuple(map(twice, call.args)), {name: twice(each) for name, each in (call.kwargs or {}).items()})]
