"""Count what breaks a graph, strictly: every break event, each once a frame, skipped frames never taken for success.

`max(0, graphs - 1)` scores a skipped frame as no break and a recompile as one; `counters["graph_break"]` misses a
tensor `if` in the root frame; `fullgraph=True` turns capture flags on. Dynamo's structured trace sees every break, and
names the frame and the compilation that each belongs to, so that is what is read here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import linecache
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._guards import CompileContext

from graphmend_evaluation.results import BreakSite, Counts, SkippedFrame

BREAK_ARTIFACT = "dynamo_graph_break_reason"
# Dynamo sends the artifact for some skipped frames only when this log is on.
_BREAK_LOG = "torch._dynamo.convert_frame.__graph_breaks"
_TRACE_LOG = "torch.__trace"
_FRAME = re.compile(r'^\s*File "(?P<path>.+)", line (?P<line>\d+), in (?P<function>.+)$')
_STACK_BEGINS = re.compile(
    r"^(User code traceback:|The graph break occurred in the following user code:|from user code:)"
)
_LINK = re.compile(r"/gb/gb(\d+)\.html")
_OF_TORCH = frozenset(
    """aten prim prims quantized mkldnn mkl onednn inductor profiler c10d _c10d_functional _c10d_functional_autograd
    _dtensor symm_mem streams debugprims rngprims higher_order""".split()
)
"""Namespaces of the operators that come with torch."""
_RESUME = re.compile(r"^torch_dynamo_resume_in_(?P<function>.+)_at_\d+$")


@dataclass(frozen=True)
class Call:
    """One call of a model: `module(*args, **kwargs)`."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    def on(self, target: Callable[..., Any]) -> Any:
        """What `target` returns for this call."""
        return target(*self.args, **(self.kwargs or {}))


@dataclass(frozen=True)
class _Graph:
    frame: int | None
    compilation: int
    ops: int
    opaque: int


@dataclass(frozen=True)
class _Frame:
    path: str
    line: int
    function: str


class _Trace(logging.Handler):
    """Keeps the records of Dynamo's structured trace that tell of breaks and of frames."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.breaks: list[tuple[int | None, str]] = []
        self.compilations: set[tuple[int | None, int]] = set()
        self.failed: list[Mapping[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, dict):
            return
        frame, compilation = metadata.get("frame_id"), metadata.get("frame_compile_id", 0)
        artifact = metadata.get("artifact")
        if isinstance(artifact, dict) and artifact.get("name") == BREAK_ARTIFACT:
            self.breaks.append((frame, getattr(record, "payload", None) or ""))
        if "dynamo_start" in metadata:
            self.compilations.add((frame, compilation))
        metrics = metadata.get("compilation_metrics")
        if isinstance(metrics, dict) and metrics.get("fail_type"):
            self.failed.append(metrics)


def _is_opaque(node: torch.fx.Node) -> bool:
    """True for a call of an operator that is not torch's own."""
    target = node.target
    if isinstance(target, torch._library.custom_ops.CustomOpDef):
        return True
    return isinstance(target, torch._ops.OpOverload) and target.namespace not in _OF_TORCH


class BreakRecorder:
    """Records what Dynamo does while it is open.

    Compile with `recorder.backend`, call, then read `recorder.counts()`. Opening it forgets everything that was
    compiled before. The graphs run in eager mode.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._trace = _Trace()
        self._graphs: list[_Graph] = []

    def backend(self, graph: torch.fx.GraphModule, _: Sequence[torch.Tensor]) -> Callable[..., Any]:
        """A backend for `torch.compile` that counts a graph and runs it as it is."""
        current = CompileContext.current_compile_id()
        frame = None if current is None else current.frame_id
        compilation = 0 if current is None else current.frame_compile_id or 0
        ops = sum(node.op.startswith("call_") for node in graph.graph.nodes)
        opaque = sum(map(_is_opaque, graph.graph.nodes))
        self._graphs.append(_Graph(frame, compilation, ops, opaque))
        return graph

    def inductor(self, graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
        """A backend for `torch.compile` that counts a graph and hands it to Inductor, torch's own default."""
        from torch._inductor.compile_fx import compile_fx  # takes a second

        self.backend(graph, inputs)
        compiled: Callable[..., Any] = compile_fx(graph, inputs)
        return compiled

    @contextlib.contextmanager
    def recording(self, calls: int = 1) -> Iterator[BreakRecorder]:
        """Listen to Dynamo, with capture flags off and room for `calls` compilations of each frame."""
        torch._dynamo.reset()
        with _listening(self._trace), capture_flags_off(calls):
            yield self
        torch._dynamo.reset()

    def counts(self, strict_error: str | None = None) -> Counts:
        """What was recorded.

        A break counts once for each frame that it breaks: a recompile of the frame repeats its breaks, and only one
        that was not there before is news.
        """
        first = [graph for graph in self._graphs if graph.compilation == 0]
        sites, events, cuts = self._sites()
        return Counts(
            graphs=len(first),
            ops_per_graph=tuple(graph.ops for graph in first),
            recompiled_graphs=len(self._graphs) - len(first),
            break_events=events,
            sites=sites,
            recompiles=sum(compilation > 0 for _, compilation in self._trace.compilations),
            skipped_frames=self._skipped(),
            strict_error=strict_error,
            ended_by=tuple(cuts.get(graph.frame) for graph in first),
            opaque_operators=sum(graph.opaque for graph in first),
        )

    def _sites(self) -> tuple[tuple[BreakSite, ...], int, dict[int | None, int]]:
        """The sites, how many events they have, and which of them broke each frame first."""
        hits: Counter[tuple[str, int, str]] = Counter()
        described: dict[tuple[str, int, str], BreakSite] = {}
        broken: dict[int | None, tuple[str, int, str]] = {}
        seen = set()
        for frame, text in self._trace.breaks:
            site = _describe(text, self._root)
            key = (site.path, site.line, site.kind)
            described.setdefault(key, site)
            broken.setdefault(frame, key)
            if (frame, key) not in seen:
                seen.add((frame, key))
                hits[key] += 1
        sites = tuple(
            BreakSite(site.path, site.line, site.function, site.source, site.gb_id, site.kind, site.reason, hits[key])
            for key, site in sorted(described.items(), key=lambda item: item[0])
        )
        numbers = {key: number for number, key in enumerate(sorted(described))}
        return sites, hits.total(), {frame: numbers[key] for frame, key in broken.items()}

    def _skipped(self) -> tuple[SkippedFrame, ...]:
        skipped = [
            SkippedFrame(
                _relative(str(metrics.get("co_filename") or ""), self._root),
                int(metrics.get("co_firstlineno") or 0),
                _function(str(metrics.get("co_name") or "")),
                first_line(str(metrics.get("fail_reason") or metrics["fail_type"])),
            )
            for metrics in self._trace.failed
        ]
        return tuple(dict.fromkeys(skipped))


def count_breaks(make: Callable[[], Callable[..., Any]], calls: Sequence[Call], *, root: Path) -> Counts:
    """Compile what `make` returns, call it with each of `calls`, and count; then ask again for the strict verdict.

    `make` is called twice, so that what the first calls did to a module does not reach the verdict. `root` is the
    repository whose files are the user's. What the module itself raises is let through.
    """
    recorder = BreakRecorder(root)
    with recorder.recording(len(calls)):
        compiled = torch.compile(make(), backend=recorder.backend, dynamic=False)
        for call in calls:
            call.on(compiled)
    return recorder.counts(strict_error(make(), calls))


def strict_error(
    target: Callable[..., Any], calls: Sequence[Call], compiled_form: Callable[..., Any] = torch.compile
) -> str | None:
    """None when Dynamo takes each of `calls` as one graph, else the first line of why not.

    `compiled_form` makes the compiled target, with the options of `torch.compile`.

    An exception of the model's own also counts as one: there is no graph for a call that raises. A torch without
    `error_on_graph_break` is asked with `fullgraph=True`, which captures more: there the count of breaks decides.
    """
    strict = getattr(torch._dynamo, "error_on_graph_break", None)
    torch._dynamo.reset()
    try:
        with capture_flags_off(len(calls)), contextlib.nullcontext() if strict is None else strict(True):
            compiled = compiled_form(target, backend="eager", dynamic=False, fullgraph=strict is None)
            for call in calls:
                call.on(compiled)
    except Exception as error:  # the model's code may raise anything, and each means "not one graph"
        return f"{type(error).__name__}: {first_line(str(error))}"
    finally:
        torch._dynamo.reset()
    return None


@contextlib.contextmanager
def capture_flags_off(calls: int = 1) -> Iterator[None]:
    """Dynamo as a user finds it who sets no flag; with room for a compilation a call."""
    room = {
        name: getattr(torch._dynamo.config, name) + calls
        for name in ("recompile_limit", "cache_size_limit")
        if hasattr(torch._dynamo.config, name)
    }
    with torch._dynamo.config.patch(
        capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False, suppress_errors=False, **room
    ):
        yield


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


@contextlib.contextmanager
def _listening(handler: logging.Handler) -> Iterator[None]:
    trace, breaks = logging.getLogger(_TRACE_LOG), logging.getLogger(_BREAK_LOG)
    level, propagate = breaks.level, breaks.propagate
    silent = logging.NullHandler()
    trace.addHandler(handler)
    breaks.addHandler(silent)
    breaks.setLevel(logging.DEBUG)
    breaks.propagate = False
    try:
        yield
    finally:
        trace.removeHandler(handler)
        breaks.removeHandler(silent)
        breaks.setLevel(level)
        breaks.propagate = propagate


def _describe(text: str, root: Path) -> BreakSite:
    frame = _innermost(_user_frames(text), root)
    link = _LINK.search(text)
    gb_id = f"GB{link.group(1)}" if link else ""
    kind, reason = _kind_and_reason(text, gb_id)
    return BreakSite(
        path=_relative(frame.path, root),
        line=frame.line,
        function=_function(frame.function),
        source=linecache.getline(frame.path, frame.line).strip(),
        gb_id=gb_id,
        kind=kind,
        reason=reason,
        events=0,
    )


def _user_frames(text: str) -> list[_Frame]:
    """The frames of the user's stack, outermost first."""
    frames: list[_Frame] = []
    inside = False
    for line in text.splitlines():
        if _STACK_BEGINS.match(line.strip()):
            inside = True
        elif inside and line.startswith("Traceback (most recent call last)"):
            break
        elif inside and (match := _FRAME.match(line)):
            frames.append(_Frame(match["path"], int(match["line"]), match["function"]))
    return frames


def _innermost(frames: Sequence[_Frame], root: Path) -> _Frame:
    own = [frame for frame in frames if Path(frame.path).is_relative_to(root)]
    return (own or list(frames) or [_Frame("", 0, "")])[-1]


def _kind_and_reason(text: str, gb_id: str) -> tuple[str, str]:
    lines = [line.strip() for line in text.splitlines()]
    kinds = _registry().get(gb_id, ())
    kind = next((line.removeprefix("Graph Break Reason: ") for line in lines if _ends_with(line, kinds)), "")
    if not kind:
        kind = kinds[0] if kinds else _first_sentence(lines)
    explanation = next((line for line in lines if line.startswith("Explanation:")), "")
    return kind, explanation.removeprefix("Explanation:").strip() or kind


def _ends_with(line: str, kinds: Sequence[str]) -> bool:
    return line.removeprefix("Graph Break Reason: ") in kinds


def _first_sentence(lines: Sequence[str]) -> str:
    """What stands where torch names the kind of a break, for one that its registry does not know."""
    boilerplate = ("Graph break in user code", "Graph Break Reason:", "Graph break:", "torch.compile will skip")
    return next((line for line in lines if line and not line.startswith(boilerplate)), "")


@functools.cache
def _registry() -> Mapping[str, tuple[str, ...]]:
    """Kinds of break by their id, from torch's own registry; empty for a torch that has none."""
    path = Path(torch._dynamo.__file__).with_name("graph_break_registry.json")
    if not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {gb_id: tuple(entry["Gb_type"] for entry in found) for gb_id, found in entries.items()}


def _relative(path: str, root: Path) -> str:
    return Path(path).relative_to(root).as_posix() if path and Path(path).is_relative_to(root) else path


def _function(name: str) -> str:
    match = _RESUME.match(name)
    return match["function"] if match else name
