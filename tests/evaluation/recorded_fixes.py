"""Record a small module's calls, write the opaque operators that the recording allows, and run both versions."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.trace import selection, watched
from graphmend_codemod.trace.document import Trace
from graphmend_codemod.trace.hints import with_hints
from graphmend_evaluation.tracing.calls import Watcher
from graphmend_evaluation.tracing.live import trace
from tests.tools.behaviour import EVERYTHING

_NUMBER = itertools.count()
BACKENDS = ("aot_eager", "inductor") if EVERYTHING else ("aot_eager",)
"""For operators whose code Inductor only calls; what draws numbers runs under both in any case."""
Call = tuple[Any, ...]


class Recorded:
    """A file of a project, what a run of it told, and the file with the fixes."""

    def __init__(self, folder: Path, source: str, calls: Callable[[], Sequence[Call]], *, gradients: bool) -> None:
        self.path = folder / "model.py"
        self.path.write_text(textwrap.dedent(source), encoding="utf-8")
        self.settings = Settings(folder, opaque=True)
        self.trace = self._record(folder, calls, gradients=gradients)
        self.before = self.path.read_text()
        hinted = with_hints(self.trace, self.settings)
        self.findings = api.check([self.path], hinted, cache=False).findings
        only = tuple(selection.keys(self.trace, hinted, cache=False))
        api.fix([self.path], hinted._replace(only_sites=only), write=True, cache=False)
        self.after = self.path.read_text()

    def _record(self, folder: Path, calls: Callable[[], Sequence[Call]], *, gradients: bool) -> Trace:
        torch.compiler.reset()
        with torch.set_grad_enabled(gradients), trace(root=folder) as found:
            compiled = torch.compile(self.model(), backend="eager", dynamic=False)
            for call in calls():
                compiled(*call)
        watcher = Watcher(watched.places(found.result, folder))
        model = self.model()
        watcher.start()
        try:
            with torch.set_grad_enabled(gradients):
                for call in calls():
                    model(*call)
        finally:
            watcher.stop()
        return dataclasses.replace(found.result, watched=watched.of_records(watcher.records(), folder))

    def model(self) -> torch.nn.Module:
        """The module as the file is now."""
        name = f"recorded_model_{next(_NUMBER)}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        torch.manual_seed(0)
        made = module.Model()
        assert isinstance(made, torch.nn.Module)
        return made

    @property
    def reasons(self) -> str:
        """Why nothing is written, of all findings."""
        return "\n".join(f"{each.code} {each.message}: {each.declined}" for each in self.findings)


def one_graph(model: torch.nn.Module, *call: Any, backend: str = "aot_eager", dynamic: bool | None = False) -> Any:
    """What the compiled model returns; raises where the graph breaks."""
    torch.compiler.reset()
    with torch._dynamo.error_on_graph_break(True):
        return torch.compile(model, backend=backend, dynamic=dynamic)(*call)


SOLVER = """
import numpy as np
import torch
from torch import nn


@torch.compiler.disable
def smooth(rows, width):
    return np.stack([np.convolve(row, np.ones(width) / width, "same") for row in rows])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.solve = smooth

    def forward(self, x):
        y = x * 2
        p = self.solve(y.detach().cpu().numpy(), 3)
        return torch.from_numpy(p) + y
"""


def grad_of(x: torch.Tensor) -> torch.Tensor:
    """The gradient, which is there."""
    assert x.grad is not None
    return x.grad


def calls_of(*shapes: tuple[int, ...]) -> Any:
    return lambda: [(torch.randn(shape, generator=torch.Generator().manual_seed(0)),) for shape in shapes]


def model_with(forward: str, before: str = "", init: str = "pass") -> str:
    head = SOLVER.partition("class Model")[0]
    lines = "\n".join(f"        {line}" for line in forward.strip().splitlines())
    return f"""{head}
{before}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x, *rest):
{lines}
"""


OUTSIDE = "\n@torch.compiler.disable\ndef outside({}):\n    return {}\n"


def recorded(tmp_path: Path, forward: str, shapes: Any, *, gradients: bool = False, **parts: str) -> Recorded:
    return Recorded(tmp_path, model_with(forward, **parts), calls_of(*shapes), gradients=gradients)


BOX = """
class Box:
    def __init__(self, value):
        self.value = value
@torch.compiler.disable
def make(x):
    return Box(x * 2)
def inner(x):
    return make(x)
"""
