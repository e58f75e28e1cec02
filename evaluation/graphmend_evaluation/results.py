"""What a measurement says: frozen values, and the JSON that carries them from a child process to its parent.

The JSON of each class is an object with its field names as keys; tuples are arrays. A child's `result.json` is one
`ModelMeasurement`. This module does not import torch.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from dataclasses import dataclass
from typing import Any, TypeVar

SCHEMA_VERSION = 1

T = TypeVar("T")


class Status(enum.Enum):
    """How a child process ended.

    `OK`: there are counts. `FAILED`: the model or its factory raised, or cannot be measured. `TIMEOUT`: the time limit
    was reached. `CRASHED`: the process died without a result (a signal, `os._exit`, out of memory).
    """

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASHED = "crashed"


@dataclass(frozen=True)
class BreakSite:
    """One place that breaks the graph.

    The place is the innermost frame in the measured repository (of any file, where the repository has none in the
    stack): `path` is relative to the repository root, or absolute for a file outside. `gb_id` and `kind` are the
    entry of torch's own registry (`GB0170`, `Data-dependent branching`), empty where torch names none. `events` says
    how often it was hit.
    """

    path: str
    line: int
    function: str
    source: str
    gb_id: str
    kind: str
    reason: str
    events: int


@dataclass(frozen=True)
class SkippedFrame:
    """A frame that Dynamo gave up on and runs in eager mode, though it was asked to compile it."""

    path: str
    line: int
    function: str
    reason: str


@dataclass(frozen=True)
class Counts:
    """What Dynamo made of all calls of one model, capture flags off, `dynamic=False`.

    `graphs` counts FX graphs of first compilations, `ops_per_graph` their call nodes; `break_events` the breaks that
    Dynamo reports, one for each frame that a site breaks. `recompiles` counts compilations after the first of a
    frame, `recompiled_graphs` their graphs; a break counts for them only if the first compilation did not have it.
    `strict_error` is None when the model runs under `torch._dynamo.error_on_graph_break(True)`, else the first line
    of the error. `ended_by` has the index in `sites` of the break that ends each graph of `ops_per_graph`, None for one
    that reaches the end of its frame; it is empty in results that do not say it. `opaque_operators` counts calls of
    operators that are not torch's own: the compiler does not look inside, and may wait for the device there.
    """

    graphs: int
    ops_per_graph: tuple[int, ...]
    recompiled_graphs: int
    break_events: int
    sites: tuple[BreakSite, ...]
    recompiles: int
    skipped_frames: tuple[SkippedFrame, ...]
    strict_error: str | None
    ended_by: tuple[int | None, ...] = ()
    opaque_operators: int = 0

    @property
    def whole_words(self) -> str:
        """`one graph`, or `one graph, 2 opaque operators`."""
        count = self.opaque_operators
        return f"one graph, {count} opaque operator{'' if count == 1 else 's'}" if count else "one graph"

    @property
    def ops(self) -> int:
        """Operations in all graphs."""
        return sum(self.ops_per_graph)

    @property
    def whole(self) -> bool:
        """True when every call runs as one graph: no break, no skipped frame, and something was captured."""
        return not self.break_events and not self.skipped_frames and self.strict_error is None and self.graphs > 0


@dataclass(frozen=True)
class Message:
    """One log record (`stream` is the logger's name), warning (`warnings`) or print (`stdout`, `stderr`).

    `where` is the file that reports it, relative to the repository root if inside, and for a log record the function.
    Line numbers are left out: an edit above moves them.
    """

    stream: str
    level: str
    text: str
    where: str


@dataclass(frozen=True)
class CallResult:
    """One call in eager mode and compiled.

    `eager_error` and `compiled_error` are `Type: message`, None for a call that returned. `compiled_difference` is
    None when the compiled result is within tolerance of the eager one, else the first difference.
    """

    eager_error: str | None
    compiled_error: str | None
    compiled_difference: str | None
    eager_messages: tuple[Message, ...]
    compiled_messages: tuple[Message, ...]

    @property
    def compiled_problem(self) -> str | None:
        """What the compiled call does that the eager one does not."""
        if self.eager_error is None:
            return self.compiled_error or self.compiled_difference
        return f"returns, where eager mode raises {self.eager_error}" if self.compiled_error is None else None


@dataclass(frozen=True)
class Comparison:
    """Eager mode of this arm against that of the first arm. `differences` names each thing that is not identical."""

    differences: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """True when outputs, exceptions, messages, buffers and random number state agree bit for bit."""
        return not self.differences


@dataclass(frozen=True)
class ModelMeasurement:
    """One model in one worktree. Everything after `seconds` is None or empty unless `status` is `OK`.

    `message` is one line for the user, empty for `OK`. `against_base` is None for the first arm. `files` are those of
    the worktree that the model imported.
    """

    model: str
    status: Status
    message: str
    seconds: float
    counts: Counts | None = None
    calls: tuple[CallResult, ...] = ()
    against_base: Comparison | None = None
    versions: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    schema: int = SCHEMA_VERSION

    @property
    def ok(self) -> bool:
        """True when the model was measured."""
        return self.status is Status.OK


@dataclass(frozen=True)
class ModelRow:
    """One model at the base and at the branch."""

    model: str
    before: ModelMeasurement
    after: ModelMeasurement

    @property
    def ok(self) -> bool:
        """True when both arms were measured, eager results agree and compiled ones are as good as they were."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """What a reviewer must know, one line each: an arm not measured, an eager or compiled difference, code that
        Dynamo leaves alone now.
        """
        found = [
            f"{arm}: {measured.message}"
            for arm, measured in (("before", self.before), ("after", self.after))
            if not measured.ok
        ]
        if self.after.against_base is not None:
            found += [f"eager result changed: {difference}" for difference in self.after.against_base.differences]
        for number, (old, new) in enumerate(zip(self.before.calls, self.after.calls, strict=False), 1):
            if new.compiled_problem is not None and old.compiled_problem is None:
                found.append(f"compiled call {number}: {new.compiled_problem}")
        return (*found, *self._left_to_python)

    @property
    def _left_to_python(self) -> tuple[str, ...]:
        """What Dynamo compiled before and leaves alone now: there is no break in what is not traced."""
        before, after = self.before.counts, self.after.counts
        if before is None or after is None:
            return ()
        if before.graphs and not after.graphs:
            return ("nothing is compiled any more",)
        if len(after.skipped_frames) <= len(before.skipped_frames):
            return ()
        known = {(frame.path, frame.function) for frame in before.skipped_frames}
        new = [frame for frame in after.skipped_frames if (frame.path, frame.function) not in known]
        return tuple(f"`{frame.function}` is not compiled any more: {frame.reason}" for frame in new)

    @property
    def fewer_ops(self) -> bool:
        """True when less is captured than before: a rewrite may have taken work out of the graph, not a break."""
        before, after = self.before.counts, self.after.counts
        return before is not None and after is not None and after.ops < before.ops


def to_json(value: Any) -> Any:
    """A dataclass of this module as what `json.dumps` takes."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(cls: type[T], data: Any) -> T:
    """The reverse of `to_json`.

    Raises `KeyError`, `TypeError` or `ValueError` where `data` is not such a value.
    """
    return typing.cast("T", _decode(cls, data))


def _decode(kind: Any, data: Any) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: _decode(hints[name], value) for name, value in dict(data).items()})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        items = list(data)
        members = [arguments[0]] * len(items) if arguments[-1] is Ellipsis else list(arguments)
        return tuple(_decode(member, item) for member, item in zip(members, items, strict=True))
    if origin in (typing.Union, types.UnionType):
        return None if data is None else _decode(next(a for a in arguments if a is not type(None)), data)
    if issubclass(kind, enum.Enum):
        return kind(data)
    if kind is float and isinstance(data, int):
        return float(data)
    if not isinstance(data, kind):
        raise TypeError(f"expected {kind.__name__}, found {data!r}")
    return data
