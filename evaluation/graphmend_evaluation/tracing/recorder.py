"""Record graph breaks, compilations and recompiles of this process, a JSON line each, as Dynamo tells of them.

The file is loaded by its path into interpreters that need not have graphmend: it uses the standard library alone, and
torch only where the process has imported it. Lines are flushed as they are written, so that a process that is killed
leaves what it had. No tensor values, no environment and no arguments of the command are written.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import itertools
import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any, TextIO

VERSION = 1
TRACE_LOG = "torch.__trace"
# Dynamo tells of some skipped frames only when this log is on.
BREAK_LOG = "torch._dynamo.convert_frame.__graph_breaks"
BREAK, RECOMPILE = "dynamo_graph_break_reason", "recompile_reasons"
_KINDS = frozenset({"dynamo_start", "compilation_metrics"})
_ARTIFACTS = frozenset({BREAK, RECOMPILE})
_METRICS = (
    "co_name",
    "co_filename",
    "co_firstlineno",
    "graph_op_count",
    "entire_frame_compile_time_s",
    "dynamo_time_before_restart_s",
    "fail_type",
    "fail_reason",
    "fail_user_frame_filename",
    "fail_user_frame_lineno",
    "is_forward",
)
_TRACEBACK = "Traceback (most recent call last):"
_LOCALS_KEPT = 40
_FRAMES_KEPT = 12
_SIZES_KEPT = 8


class _WantedOnly(list[logging.Handler]):
    """Handlers of torch's structured log that are "there" only for records which somebody reads.

    `trace_structured` asks `if trace_log.handlers:` before it prints graphs, guards and generated code for a record.
    With our handler alone that would be work for nothing: a tenth and more of a short compilation. pytest adds handlers
    that show the whole log, hundreds of lines, under a test that fails: they are left out.
    """

    def append(self, handler: logging.Handler) -> None:
        """Add a handler that is not of pytest's."""
        if not _of_pytest(handler):
            super().append(handler)

    def __bool__(self) -> bool:
        if len(self) != 1:
            return len(self) > 1
        asking = sys._getframe(1)
        name = asking.f_locals.get("name") if asking.f_code.co_name == "trace_structured" else None
        if not isinstance(name, str):  # another torch, which asks in another way: rather all than nothing
            return True
        if name != "artifact":
            return name in _KINDS
        above = asking.f_back
        named = above is not None and above.f_code.co_name == "trace_structured_artifact"
        return not named or above is None or above.f_locals.get("name") in _ARTIFACTS


def _of_pytest(handler: logging.Handler) -> bool:
    return type(handler).__module__.startswith("_pytest.")


class Recorder(logging.Handler):
    """Writes what Dynamo tells to a new file below `folder`; each forked process gets a file of its own."""

    def __init__(self, folder: str) -> None:
        super().__init__(logging.DEBUG)
        self._folder = folder
        self._cwd = os.getcwd()
        self._stream: TextIO | None = None
        self._pid = 0
        self._lost = 0
        self._gaps: Any = None

    def start(self) -> None:
        """Listen from now on."""
        trace = logging.getLogger(TRACE_LOG)
        others = [each for each in trace.handlers if not _of_pytest(each)]
        trace.handlers = _WantedOnly([*others, self])

    def stop(self) -> None:
        """Listen no more, and close the file."""
        if self._gaps is not None:
            self._gaps.flush()
            self._gaps.stopped = True
        trace, breaks = logging.getLogger(TRACE_LOG), logging.getLogger(BREAK_LOG)
        left = [each for each in trace.handlers if each is not self]
        # A block in a program that is recorded as a whole: the other recorder goes on as it was.
        trace.handlers = _WantedOnly(left) if any(type(each).__name__ == "Recorder" for each in left) else left
        for each in [each for each in breaks.handlers if isinstance(each, _Silent)]:
            breaks.removeHandler(each)
            breaks.setLevel(logging.NOTSET)
            breaks.propagate = True
        self.finish()

    def finish(self) -> None:
        """Note that the process came to its end, and close the file."""
        if self._gaps is not None:
            self._gaps.flush()
        if self._stream is not None and self._pid == os.getpid():
            self._write({"e": "end"})
            self._stream.close()
        self._stream = None

    def emit(self, record: logging.LogRecord) -> None:
        """One record of the structured log. Nothing that goes wrong here reaches the user's code."""
        metadata = getattr(record, "metadata", None)
        if not isinstance(metadata, dict):
            return
        try:
            for event in self._events(metadata, getattr(record, "payload", None)):
                self._write(event)
        except Exception as error:
            self._complain(error)

    def _events(self, metadata: Mapping[str, Any], payload: Any) -> Iterator[dict[str, Any]]:
        place = {"f": metadata.get("frame_id"), "c": metadata.get("frame_compile_id") or 0}
        artifact = metadata.get("artifact")
        if isinstance(artifact, dict) and isinstance(payload, str):
            if artifact.get("name") == BREAK:
                facts: list[tuple[str, str, dict[str, Any], int]] = []
                with contextlib.suppress(Exception):  # facts are hints: what goes wrong with them costs no event
                    facts = list(_facts_at_break(sys.exc_info()[2]))
                text = _shortened(payload)
                yield {"e": "break", **place, "a": metadata.get("attempt", 0), "text": text, "locals": facts}
            elif artifact.get("name") == RECOMPILE:
                yield {"e": "recompile", **place, "text": payload}
        if "dynamo_start" in metadata:
            _listen_for_skips()
            self._time_gaps()
            stack = metadata["dynamo_start"].get("stack") or ()
            yield {"e": "start", **place, "stack": list(_plain(stack))}
        metrics = metadata.get("compilation_metrics")
        if isinstance(metrics, dict):
            kept = {name: metrics.get(name) for name in _METRICS}
            yield {"e": "compiled", **place, **kept, "t": time.time()}

    def _time_gaps(self) -> None:
        """Time what lies between graphs, from the first compilation on."""
        if self._gaps is None:
            self._gaps = _gaps_module().Gaps(self._write)
            self._gaps.watch()
        self._gaps.compiling()

    def _write(self, event: Mapping[str, Any]) -> None:
        if self._stream is None or self._pid != os.getpid():
            self._open()
        assert self._stream is not None
        self._stream.write(json.dumps(event, default=str) + "\n")
        self._stream.flush()

    def _open(self) -> None:
        self._pid = os.getpid()
        path = os.path.join(self._folder, f"{self._pid}-{time.time_ns()}.jsonl")
        self._stream = open(path, "x", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        torch = sys.modules.get("torch")
        self._write(
            {
                "e": "process",
                "v": VERSION,
                "pid": self._pid,
                "program": os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else "",
                "cwd": self._cwd,
                "python": ".".join(map(str, sys.version_info[:3])),
                "torch": str(getattr(torch, "__version__", "")),
                "rank": os.environ.get("RANK"),
            }
        )
        atexit.register(self.finish)
        if (
            processes := sys.modules.get("multiprocessing.util")
        ) is not None:  # a forked worker runs only its finalizers
            processes.Finalize(None, self.finish, exitpriority=-100)

    def _complain(self, error: Exception) -> None:
        self._lost += 1
        if self._lost == 1:
            print(
                f"graphmend: note: a record was lost: {type(error).__name__}: {str(error).partition(chr(10))[0]}",
                file=sys.stderr,
            )


def _gaps_module() -> Any:
    """The module beside this file, which may not be part of a package here."""
    name = "_graphmend_gaps"
    if name not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gaps.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class _Silent(logging.NullHandler):
    """Ours, in the log that is turned on for its side effect."""


def _listen_for_skips() -> None:
    """Turn on the log without which Dynamo does not tell of some skipped frames, unless the user did."""
    breaks = logging.getLogger(BREAK_LOG)
    if not breaks.isEnabledFor(logging.DEBUG):
        if not any(isinstance(each, _Silent) for each in breaks.handlers):
            breaks.addHandler(_Silent())
        breaks.setLevel(logging.DEBUG)
        breaks.propagate = False


def _plain(stack: Iterable[Any]) -> Iterator[tuple[str, int, str]]:
    """Frames with the names of their files, which torch writes as numbers of a table."""
    structured = sys.modules.get("torch._logging.structured")
    table = getattr(structured, "INTERN_TABLE", {})
    names = {number: name for name, number in table.items()}
    for frame in stack:
        filename = frame.get("filename")
        yield str(names.get(filename, filename)), int(frame.get("line") or 0), str(frame.get("name") or "")


def _shortened(text: str) -> str:
    """What a break says without the stack inside of Dynamo, of which only the exception stays."""
    head, found, tail = text.partition(_TRACEBACK)
    if not found:
        return text
    lines = tail.split("\n")
    exception = next((number for number, line in enumerate(lines) if line[:1].strip() and ": " in line), len(lines))
    return "\n".join([head + found, *lines[exception:]])


# -- what the source does not say: types of the locals where the graph breaks -----------------------------------------


def _facts_at_break(traceback: TracebackType | None) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    """What Dynamo knows of the local variables in the frames that it traced when the graph broke, outermost first.

    File and function of each, with the facts by name, and its line, as torch's words leave out callers. Nothing is
    computed for it: these are types, dtypes, sizes and classes that Dynamo holds while it compiles.
    """
    tracers: list[Any] = []
    while traceback is not None:
        tracer = _tracer(traceback.tb_frame)
        if tracer is not None and not any(tracer is each for each in tracers):
            tracers.append(tracer)
        traceback = traceback.tb_next
    frame = None if tracers else sys._getframe()  # a branch in the outermost frame is told of without an exception
    while frame is not None and not tracers:
        tracer, frame = _tracer(frame), frame.f_back
        tracers = [] if tracer is None else [tracer]
    own = os.path.dirname(str(getattr(sys.modules.get("torch"), "__file__", ""))) + os.sep
    for left, tracer in zip(range(len(tracers), 0, -1), tracers, strict=True):
        code, line = tracer.f_code, _own(tracer).get("lineno")
        told = left <= _FRAMES_KEPT and not code.co_filename.startswith(own)
        yield code.co_filename, code.co_name, _facts_of(tracer) if told else {}, line if isinstance(line, int) else 0


def _facts_of(tracer: Any) -> dict[str, Any]:
    """What Dynamo knows of the local variables of one frame."""
    facts = {}
    for name, variable in list(tracer.symbolic_locals.items())[:_LOCALS_KEPT]:
        try:
            known = str(name).isidentifier() and not str(name).startswith("__")
            shared = type(variable).__name__ == "CellVariable"  # what a nested function reads as well
            held = tracer.output.side_effects.load_cell(variable) if known and shared else variable
            fact = _fact(held) if known else None
        except Exception:  # a class of Dynamo's that is other than we think costs only itself
            fact = None
        if fact:
            facts[str(name)] = fact
        if name == "self":
            with contextlib.suppress(Exception):
                facts.update(itertools.islice(_attributes(variable, tracer.f_code.co_names), _LOCALS_KEPT))
    return facts


def _attributes(variable: Any, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a module holds of what the function names: classes of layers, options, tensors."""
    held = _own(variable)
    held = _own(held["_cache"]) if "_cache" in held else held
    module = _own(held.get("value"))
    for name in names:
        for every in (module, *(module.get(kind) or {} for kind in ("_modules", "_parameters", "_buffers"))):
            fact = _of_value(every[name]) if name in every else None
            if fact:
                yield f"self.{name}", fact


def _tracer(frame: FrameType) -> Any:
    """The frame's `self`, if it is Dynamo's tracer of a function; else None."""
    candidate = frame.f_locals.get("self")
    # By its dictionary: to ask a lazy variable of Dynamo's for an attribute makes it real, which may raise.
    return candidate if {"symbolic_locals", "f_code"} <= _own(candidate).keys() else None


def _own(value: Any) -> Mapping[str, Any]:
    """The attributes that an object holds itself, without asking it."""
    try:
        return object.__getattribute__(value, "__dict__") or {}
    except AttributeError:
        return {}


def _fact(variable: Any) -> dict[str, Any] | None:
    kind = type(variable).__name__
    if any(each.__name__ == "LazyVariableTracker" for each in type(variable).__mro__):
        if not variable.is_realized():
            return _of_value(getattr(variable, "_cache").value)  # noqa: B009
        variable = variable.realize()
        kind = type(variable).__name__
    if hasattr(variable, "dtype") and hasattr(variable, "requires_grad"):
        example = variable.proxy.node.meta.get("example_value")
        return _of_value(example)
    if kind == "ConstantVariable":
        return _of_value(variable.value)
    if kind == "SymNodeVariable":
        return {"type": "int or float that may vary"}
    try:
        return {"type": _name(variable.python_type())}
    except NotImplementedError:
        return None


def _of_value(value: Any) -> dict[str, Any] | None:
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        sizes = [size if isinstance(size, int) else "s" for size in tuple(value.shape)[:_SIZES_KEPT]]
        return {
            "type": _name(type(value)) if type(value).__name__ not in {"FakeTensor", "Tensor"} else "torch.Tensor",
            "dtype": str(value.dtype).removeprefix("torch."),
            "sizes": sizes,
            "device": value.device.type,
            "requires_grad": bool(value.requires_grad),
        }
    if value is None or isinstance(value, bool):  # which path an option takes; other values are the user's own
        return {"type": type(value).__name__, "value": value}
    return {"type": _name(type(value))}


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
