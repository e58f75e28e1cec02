"""Time between the graphs of one call, in eager mode: what a graph break costs at every call, long after compilation.

As the recorder, it is loaded by its path and uses the standard library alone. A compiled graph gets a thin wrapper that
reads a clock before and after; what lies between two graphs of one outermost call of compiled code counts for the
second one. What a program does between two such calls (a step of its optimizer, the next batch) is no gap.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

_EVERY = 1.0  # seconds between two writings
_MARK = "_graphmend_timed"

Graph = tuple[int, int]


class _Last(threading.local):
    """When the last graph of a thread's call came to its end, and how many calls of compiled functions are open."""

    at: float | None = None
    depth = 0


class Gaps:
    """Sums by graph, handed to `write` now and then, and at the end by `flush`."""

    def __init__(self, write: Callable[[Mapping[str, Any]], None]) -> None:
        self._write = write
        self._last = _Last()
        self._lock = threading.Lock()
        self._sums: dict[Graph, list[float]] = {}
        self._written = time.monotonic()
        self.stopped = False

    def compiling(self) -> None:
        """Dynamo compiles on this thread: what lies between two graphs now is no eager time."""
        self._last.at = None
        frame = sys._getframe()
        while (above := frame.f_back) is not None:
            frame = above
            if frame.f_code.co_name == "compile_wrapper":
                hooks = getattr(frame.f_locals.get("self"), "enter_exit_hooks", None)
                if isinstance(hooks, list) and self._enter not in hooks:
                    hooks.append(self._enter)

    def _enter(self) -> Callable[[], None]:
        """A compiled function is called; what is given back is called when it returns or raises."""
        if not self._last.depth:
            self._last.at = None
        self._last.depth += 1
        return self._leave

    def _leave(self) -> None:
        self._last.depth -= 1

    def watch(self) -> None:
        """Time each graph that is compiled from now on. Nothing changes where this torch is not as we know it."""
        module = sys.modules.get("torch._dynamo.output_graph")
        original = getattr(getattr(module, "OutputGraph", None), "call_user_compiler", None)
        if original is None or getattr(original, _MARK, None) is self:
            return

        @functools.wraps(original)
        def compiled(output: Any, *args: Any, **kwargs: Any) -> Any:
            graph = original(output, *args, **kwargs)
            return graph if self.stopped or getattr(output, "package", None) is not None else self._timed(graph)

        setattr(compiled, _MARK, self)
        module.OutputGraph.call_user_compiler = compiled  # type: ignore[union-attr]

    def _timed(self, graph: Callable[..., Any]) -> Callable[..., Any]:
        number = _current()
        if number is None or not callable(graph):
            return graph
        graph = _really(graph)
        last, clock, note = self._last, time.perf_counter, self._note

        def timed(*args: Any, **kwargs: Any) -> Any:
            if last.at is not None:
                note(number, clock() - last.at)
            try:
                return graph(*args, **kwargs)
            finally:
                last.at = clock()

        return timed

    def _note(self, graph: Graph, seconds: float) -> None:
        with self._lock:
            sums = self._sums.setdefault(graph, [0, 0.0])
            sums[0] += 1
            sums[1] += seconds
        if time.monotonic() - self._written > _EVERY:
            self.flush()

    def flush(self) -> None:
        """Write what has come together since the last time."""
        with self._lock:
            sums, self._sums = self._sums, {}
            self._written = time.monotonic()
        if not self.stopped:
            for (frame, compilation), (count, seconds) in sums.items():
                self._write({"e": "gap", "f": frame, "c": compilation, "n": int(count), "s": seconds})


def _really(graph: Callable[..., Any]) -> Callable[..., Any]:
    """The graph itself where torch would write it at its first call: it does not know it behind a wrapper."""
    owner = getattr(graph, "__self__", None)
    if getattr(graph, "__name__", "") != "_lazy_forward" or not hasattr(owner, "real_recompile"):
        return graph
    owner.real_recompile()  # type: ignore[union-attr]
    return owner.forward  # type: ignore[union-attr,no-any-return]


def _current() -> Graph | None:
    """Frame and number of the compilation that is going on."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    number = context.current_compile_id() if context is not None else None
    frame, compilation = getattr(number, "frame_id", None), getattr(number, "frame_compile_id", None)
    return None if frame is None or compilation is None else (int(frame), int(compilation))
