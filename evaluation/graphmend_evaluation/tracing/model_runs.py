"""The two runs of a model that `graphmend trace --calls` makes of a program: compiled, and without torch.compile."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import torch

from graphmend_codemod.trace import document, watched
from graphmend_evaluation import runs
from graphmend_evaluation.counting import BreakRecorder, Call
from graphmend_evaluation.loading import Factory, Model
from graphmend_evaluation.results import Counts
from graphmend_evaluation.runs import Observed
from graphmend_evaluation.tracing.calls import Watcher
from graphmend_evaluation.tracing.live import trace

_VALUES = (bool, int, float, str, type(None))


def as_a_user(factory: Factory) -> Factory:
    """The model with the calls that a user would record: its first one twice, then its other ones, and last the first
    with twice as many rows, where all tensors that it is given have as many."""

    def made() -> tuple[Any, list[Call], dict[str, bool]]:
        model: Model = factory.make()
        first = model.calls[0]
        return model.target, [first, *model.calls, *_with_more_rows(first)], {"gradients": model.gradients}

    return Factory(factory.root, factory.name, made)


def that_run(eager: list[Observed]) -> int:
    """How many calls there are before the first one that raises in eager mode: so many are recorded."""
    return sum(1 for _ in itertools.takewhile(lambda each: each.error is None, eager))


def few_calls(model: Model, calls: int) -> Model:
    """The model with its first calls alone."""
    return Model(model.target, model.calls[:calls], model.gradients)


def compiled_run(model: Model, root: Path, target: Path) -> Counts:
    """Make the model's calls compiled and write the trace to `target`; what the strict counter says of the same run."""
    counter = BreakRecorder(root)
    with trace(target, root=root), counter.recording(len(model.calls)):
        runs.observe(model, torch.compile(model.target, backend=counter.backend), root)
    return counter.counts()


def plain_run(model: Model, root: Path, recorded: document.Trace) -> tuple[document.Watched, ...]:
    """Make the model's calls without torch.compile: what the functions that broke in the other run held."""
    watcher = Watcher(watched.places(recorded, root))
    watcher.start()
    try:
        runs.observe(model, model.target, root)
    finally:
        watcher.stop()
    return watched.of_records(watcher.records(), root)


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
