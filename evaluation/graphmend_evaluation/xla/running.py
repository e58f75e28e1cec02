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
from graphmend_evaluation.speed.timing import model_on
from graphmend_evaluation.xla.metrics import Report, read_report
from graphmend_evaluation.xla.results import XlaRun

_WARM_UPS = 3
_PASSES = 15
_QUIET = 0.3
_LONGEST_WAIT = 10.0


class Running:
    """A model on the XLA device in one mode: counted once, then timed for as many passes as are asked for."""

    def __init__(self, model: Model, mode: str, root: Path) -> None:
        self._mode = mode
        self._model = model_on(model, torch_xla.device())
        self._recorder = BreakRecorder(root)
        self._target = self._model.target if mode == "lazy" else self._compiled()
        torch_xla.sync(wait=True)

    def count(self) -> dict[str, Any]:
        """Every call: the first passes, which compile, then passes in which nothing new is compiled. An `XlaRun`."""
        graphs, breaks = 0, 0
        if self._mode == "lazy":
            first, steady = self._counted()
        else:
            with self._recorder.recording(len(self._model.calls)):
                first, steady = self._counted()
            counts = self._recorder.counts()
            graphs, breaks = counts.graphs + counts.recompiled_graphs, counts.break_events
        calls = len(self._model.calls) * _PASSES
        found: dict[str, Any] = to_json(
            XlaRun(
                mode=self._mode,
                fx_graphs=graphs,
                break_events=breaks,
                hlo_graphs=first.compilations + steady.compilations,
                executions=steady.executions / calls,
                transfers=steady.transfers / calls,
                host_reads=steady.host_reads / calls,
                fallbacks=tuple((name, value / calls) for name, value in steady.fallbacks.items()),
            )
        )
        return found

    def time(self, passes: int) -> float:
        """Median seconds of one call over so many passes, the device waited for."""
        seconds = []
        for _ in range(passes):
            began = time.perf_counter()
            _pass(self._model, self._target)
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds) / len(self._model.calls)

    def _compiled(self) -> Callable[..., Any]:
        openxla = torch._dynamo.lookup_backend("openxla")

        def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
            self._recorder.backend(graph, inputs)
            return openxla(graph, inputs)

        return torch.compile(self._model.target, backend=backend, dynamic=False)

    def _counted(self) -> tuple[Report, Report]:
        _report()
        metrics.clear_all()
        seed()
        for _ in range(_WARM_UPS):
            _pass(self._model, self._target)
        first = _report()
        metrics.clear_all()
        for _ in range(_PASSES):
            _pass(self._model, self._target)
        return first, _report()


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
