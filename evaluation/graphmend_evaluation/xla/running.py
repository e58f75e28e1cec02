"""Run a model under torch_xla and count. Runs in a child process; imports torch and torch_xla."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch_xla
from torch_xla.core import xla_model
from torch_xla.debug import metrics

from graphmend_evaluation.counting import BreakRecorder
from graphmend_evaluation.loading import Model, seed
from graphmend_evaluation.results import to_json
from graphmend_evaluation.runs import backward, modes
from graphmend_evaluation.speed.statistics import spread
from graphmend_evaluation.speed.timing import model_on
from graphmend_evaluation.xla.metrics import Report, read_report
from graphmend_evaluation.xla.results import XlaRun

_WARM_UPS = 3
_PASSES = 15
_QUIET = 0.3
_LONGEST_WAIT = 10.0


def run(model: Model, mode: str, root: Path) -> dict[str, Any]:
    """Every call of the model on the XLA device: first calls, then passes in which nothing new is compiled."""
    placed = model_on(model, torch_xla.device())
    torch_xla.sync(wait=True)
    if mode == "lazy":
        graphs, breaks = 0, 0
        first, steady, seconds = _passes(placed, placed.target)
    else:
        recorder = BreakRecorder(root)
        openxla = torch._dynamo.lookup_backend("openxla")

        def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
            recorder.backend(graph, inputs)
            return openxla(graph, inputs)

        with recorder.recording(len(placed.calls)):
            target = torch.compile(placed.target, backend=backend, dynamic=False)
            first, steady, seconds = _passes(placed, target)
        counts = recorder.counts()
        graphs, breaks = counts.graphs + counts.recompiled_graphs, counts.break_events
    calls = len(placed.calls) * _PASSES
    found: dict[str, Any] = to_json(
        XlaRun(
            mode=mode,
            fx_graphs=graphs,
            break_events=breaks,
            hlo_graphs=first.compilations + steady.compilations,
            executions=steady.executions / calls,
            transfers=steady.transfers / calls,
            host_reads=steady.host_reads / calls,
            fallbacks=tuple((name, value / calls) for name, value in steady.fallbacks.items()),
            seconds=statistics.median(seconds) / len(placed.calls),
            noise=spread(seconds).noise,
        )
    )
    return found


def _passes(model: Model, target: Callable[..., Any]) -> tuple[Report, Report, list[float]]:
    _report()
    metrics.clear_all()
    seed()
    for _ in range(_WARM_UPS):
        _pass(model, target)
    first = _report()
    metrics.clear_all()
    seconds = []
    for _ in range(_PASSES):
        began = time.perf_counter()
        _pass(model, target)
        seconds.append(time.perf_counter() - began)
    return first, _report(), seconds


def _report() -> Report:
    """What was counted. Executions are only counted a while after they are done, whatever was waited for."""
    deadline = time.monotonic() + _LONGEST_WAIT
    xla_model.wait_device_ops()
    report = read_report(metrics.metrics_report())
    while time.monotonic() < deadline:
        time.sleep(_QUIET)
        last, report = report, read_report(metrics.metrics_report())
        if report == last:
            break
    return report


def _pass(model: Model, target: Callable[..., Any]) -> None:
    """All calls. What is pending runs at the end of each, and no result is read: only the model's own reads count."""
    for call in model.calls:
        with modes(model):
            output = call.on(target)
            if model.gradients:
                backward(model, output)
        torch_xla.sync(wait=True)
        xla_model.wait_device_ops()
        del output
