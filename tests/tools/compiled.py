"""Whether a module is one graph under `torch.compile`, and gives there what it gives in eager mode."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
import torch._dynamo
from torch._dynamo import guards, symbolic_convert, utils

from tests.tools.observe import Observation, Scenario, observe
from tests.tools.snapshot import SUBJECT, TensorSnapshot
from tests.tools.subject import forget, register

_TOLERANCE = {"torch.float16": 2e-3, "torch.bfloat16": 2e-2, "torch.float32": 1e-5, "torch.float64": 1e-10}
_BREAK = "torch._dynamo.exc.Unsupported"
_BACKEND = os.environ.get("GRAPHMEND_TEST_BACKEND", "")
"""Compiles the graphs of all tests, for a run by hand: `inductor` takes hours. Without it they run as they are."""


def compiles(
    source: str,
    inputs: Sequence[str],
    *,
    name: str = "Model",
    scenarios: Sequence[Scenario] = (Scenario(),),
    strict: bool = True,
    state: bool = True,
    dynamic: bool | None = False,
) -> None:
    """Assert that `source` has the results of eager mode for all of `inputs`, and when `strict` is one graph.

    Without `state`, what it leaves in attributes and buffers is not looked at. `dynamic` is torch.compile's own.
    """
    __tracebackhide__ = True
    found = list(
        compiled_differences(
            source, inputs, name=name, scenarios=scenarios, strict=strict, state=state, dynamic=dynamic
        )
    )
    if found:
        raise AssertionError("\n".join(["compiled is not as it should be:", *found, "", source]))


def compiled_differences(
    source: str,
    inputs: Sequence[str],
    *,
    name: str = "Model",
    scenarios: Sequence[Scenario] = (Scenario(),),
    strict: bool = False,
    state: bool = True,
    dynamic: bool | None = False,
    backend: str = _BACKEND,
) -> Iterator[str]:
    """Where the compiled module differs from itself in eager mode; when `strict`, graph breaks are differences too.

    `backend` compiles the graphs, such as `inductor`, which computes gradients in another way; without one they run.
    Where eager mode raises, or its backward pass, compiled code must do so as well, whatever the type. Messages are
    not compared: that of autograd has the number of writes in it.
    """
    registered = register(source)
    try:
        for scenario in scenarios:
            eager = observe(registered, name, inputs, scenario)
            graphs: list[int] = []
            with clean_dynamo():
                allowed = not strict or any(call.outcome[0] == "raised" for call in eager)
                compiled = observe(registered, name, inputs, scenario, _compiler(graphs, allowed, dynamic, backend))
            for number, (old, new) in enumerate(zip(eager, compiled, strict=True), 1):
                yield from compared(old, new, f"compiled, {scenario}, call {number}", state)
            if strict and not sum(graphs):
                yield f"compiled, {scenario}: nothing was captured"
    finally:
        forget(registered)


def _compiler(graphs: list[int], breaks_allowed: bool, dynamic: bool | None, backend: str) -> Callable[[Any], Any]:
    """Wraps a module in its compiled form; each graph's number of operations goes into `graphs`."""

    def count(graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(sum(node.op.startswith("call_") for node in graph.graph.nodes))
        made: Callable[..., Any] = (
            torch._dynamo.lookup_backend(backend)(graph, list(inputs)) if backend else graph.forward
        )
        return made

    def wrap(made: Any) -> Any:
        compiled: Any = torch.compile(made, backend=count, dynamic=dynamic)

        def call(*args: Any, **kwargs: Any) -> Any:
            with torch._dynamo.error_on_graph_break(not breaks_allowed):
                return compiled(*args, **kwargs)

        return call

    return wrap


@contextlib.contextmanager
def quick_dynamo() -> Iterator[None]:
    """Dynamo without what costs half of the time of a small module, and changes nothing that tests look at.

    It empties the processor's caches to time each set of guards, writes all settings down for each graph, and looks for
    garbage after it. And pytest's handlers make it write its whole structured log, which nobody reads.
    """
    untimed = mock.patch.object(guards, "profile_guard_manager", create=True, return_value=0.0)
    uncounted = mock.patch.object(utils.get_metrics_context(), "_on_exit", create=True)
    uncollected = torch._dynamo.config.patch(log_compilation_metrics=False, run_gc_after_compile=False)
    unheard: Any = mock.patch.object(logging.getLogger("torch.__trace"), "handlers", [])
    with untimed, uncounted, uncollected, unheard:
        yield


@contextlib.contextmanager
def clean_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    # Dynamo keeps what it has imported by name, also among the globals of frames of torch: every subject is the first.
    symbolic_convert._import_module.cache_clear()
    name = f"__import_{SUBJECT}"
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType) and name in module.__dict__:
            del module.__dict__[name]
    flags = torch._dynamo.config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False)
    gradients = torch.is_grad_enabled()
    try:
        with flags, quick_dynamo():
            yield
    finally:
        # A graph that raises inside of `torch.no_grad()` leaves gradients off where a backend runs it as it is.
        torch.set_grad_enabled(gradients)
        torch._dynamo.reset()


def compared(old: Observation, new: Observation, where: str, state: bool) -> Iterator[str]:
    if old.outcome[0] != new.outcome[0]:
        error = new.outcome if new.outcome[0] == "raised" else old.outcome
        kind, text, _ = error[1]
        where_only = "compiled" if error is new.outcome else "in eager mode"
        what = "graph break" if kind == _BREAK else f"{kind} only {where_only}"
        yield f"{where}: {what}: {' '.join(text.split())[:400]}"
        return
    if old.outcome[0] == "raised":
        return
    raised = [isinstance(each, tuple) and each[:1] == ("raised",) for each in (old.gradients, new.gradients)]
    gradients = () if all(raised) else ("gradients",)
    for name in ("outcome", "inputs", *gradients, *(("state",) if state else ())):
        yield from itertools.islice(_distance(getattr(old, name), getattr(new, name), f"{where}: {name}"), 3)


def _distance(old: Any, new: Any, where: str) -> Iterator[str]:
    """Like `differences`, within the tolerance of each dtype and without regard to sharing.

    A select carries gradients where the branch that eager takes had none: they must be zero.
    """
    if isinstance(old, TensorSnapshot) and isinstance(new, TensorSnapshot):
        same = (old.dtype, old.shape) == (new.dtype, new.shape)
        if not (same and _close(old, new)):
            yield f"{where}: {old} became {new}"
    elif old is None and isinstance(new, TensorSnapshot):
        if new.tensor().count_nonzero():
            yield f"{where}: no gradient became {new}"
    elif old is None and isinstance(new, tuple):
        for position, item in enumerate(new):
            yield from _distance(None, item, f"{where}.{position}")
    elif isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        for position, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _distance(first, second, f"{where}.{position}")
    elif old != new:
        yield f"{where}: {old!r:.200} became {new!r:.200}"


def _close(old: TensorSnapshot, new: TensorSnapshot) -> bool:
    if old.data == new.data:
        return True
    tolerance = _TOLERANCE.get(old.dtype)
    if tolerance is None:
        return False
    return torch.allclose(old.tensor(), new.tensor(), rtol=tolerance, atol=tolerance, equal_nan=True)
