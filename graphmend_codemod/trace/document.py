"""`trace.json`: what Dynamo did in a run, each place that broke a graph once. Plain frozen values, no torch.

The file holds no tensor values, no environment and no arguments of the command. Paths are relative to the project, or
begin at `site-packages` or at Python's own library.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from graphmend_codemod.core.errors import GraphmendError
from graphmend_codemod.core.source import SourceError, read_bytes

SCHEMA = 1
OWN, LIBRARY, TORCH = "own", "library", "torch"
MOST_BYTES = 256 * 2**20

Item = TypeVar("Item")


class TraceError(GraphmendError):
    """A trace that cannot be read. The text is one line: file, cause, way out."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a function. `where` says whose it is: `own`, `library` or `torch`."""

    path: str
    line: int
    function: str
    where: str = OWN


@dataclass(frozen=True)
class Fact:
    """What Dynamo knew of a local variable at a break. A hint, for it was so in this run.

    `type` is the class with its module. Tensors have the rest as well; `sizes` holds "s" for a size that varies.
    `value` is kept of `None`, `True` and `False` alone.
    """

    name: str
    type: str
    dtype: str = ""
    sizes: tuple[int | str, ...] | None = None
    device: str = ""
    requires_grad: bool | None = None
    value: bool | None = None
    always_same: bool = True


@dataclass(frozen=True)
class Known:
    """What Dynamo knew of the locals of a function of the project when a graph broke there, or in what it called."""

    place: SourceLine
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Statement:
    """A statement of a function that was watched: what it is known by, and its first and last line then."""

    key: str
    first: int
    last: int


@dataclass(frozen=True)
class Watched:
    """What a function with a break held from statement to statement while the program ran without torch.compile.

    `place` has its first line and its qualified name, `broken` the lines that broke graphs, `called` those that led to
    lines that did. `statements` are its statements in the order of `ast.walk`. Each of `calls` is a JSON list of
    moments: the line, whether gradients were on, and what names held then, by the number of a fact; each of `facts` is
    such a fact as JSON.
    """

    place: SourceLine
    broken: tuple[int, ...]
    statements: tuple[Statement, ...]
    facts: tuple[str, ...]
    calls: tuple[str, ...]
    called: tuple[int, ...] = ()


@dataclass(frozen=True)
class Site:
    """A place that breaks the graph, once, however many frames and processes it broke.

    `place` is the innermost frame that Dynamo traced, `column` and `end_column` count characters from 1 and are None
    where Python does not tell. `own` is the innermost frame of the project, which may be the same. `events` counts the
    frames that it broke, `recompiled` how often a recompilation met it again. `graphs` and `seconds` are what would not
    have been compiled without it: frames that continue behind the break, functions around which it opened the
    graph, and tracing that was thrown away. `gaps` counts how often a graph ran that is there because of it,
    `gap_seconds` is the time in eager mode before these graphs, waiting for the device included, and `syncs` counts at
    least how often Python read a value of a tensor there. `skips` says that the whole function runs without a graph
    because of it.
    """

    id: str
    place: SourceLine
    column: int | None
    end_column: int | None
    source: str
    own: SourceLine | None
    own_source: str
    gb_id: str
    kind: str
    reason: str
    hints: tuple[str, ...]
    events: int
    recompiled: int
    frames: int
    graphs: int
    seconds: float
    skips: bool
    callers: tuple[SourceLine, ...]
    stack: tuple[SourceLine, ...]
    facts: tuple[Fact, ...]
    processes: int
    gaps: int = 0
    gap_seconds: float = 0.0
    syncs: int = 0

    @property
    def where(self) -> str:
        """Whose code breaks the graph."""
        return self.place.where

    @property
    def shown(self) -> SourceLine:
        """Where the user can do something: the line of the project, else the innermost one."""
        return self.own or self.place


@dataclass(frozen=True)
class Reason:
    """A guard that failed, in torch's words, and how often."""

    guard: str
    words: str
    count: int


@dataclass(frozen=True)
class Recompiled:
    """A function that was compiled again."""

    place: SourceLine
    count: int
    seconds: float
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Skipped:
    """A function that Dynamo gave up and left to Python as a whole."""

    place: SourceLine
    reason: str
    count: int


@dataclass(frozen=True)
class Compilation:
    """One compilation of one frame, in the order of the run. `site` is the id of what ends its graph, or None.

    `because` is the id of the site without which it would not have been needed. `operations` is None where there is no
    graph. `call` numbers the outermost compiled calls of a process. `module` is the class around the function, empty
    for a function of none. `gaps` and `gap_seconds` are those of this graph
    alone: how often it ran behind another one, and the time in eager mode in between.
    """

    process: int
    id: str
    place: SourceLine
    operations: int | None
    seconds: float
    call: int
    site: str | None = None
    because: str | None = None
    gaps: int = 0
    gap_seconds: float = 0.0
    module: str = ""


@dataclass(frozen=True)
class Process:
    """A process of the run that compiled something. `finished` is False where it was killed."""

    program: str
    rank: str | None
    torch: str
    python: str
    finished: bool


@dataclass(frozen=True)
class Totals:
    """Sums over the run. `wall` is how long the program took, 0 where that is not known."""

    sites: int
    events: int
    graphs: int
    compilations: int
    recompilations: int
    skipped: int
    seconds: float
    gap_seconds: float = 0.0
    wall: float = 0.0


@dataclass(frozen=True)
class Trace:
    """All of it. `command` is the program that was run, without its arguments, or where logs were read.

    `arguments` is the whole command, and `folder` where it ran, from the project; empty unless asked for. `known` is
    what rules take as hints, by function and the line it had got to. `watched` is there where the program ran once more
    without torch.compile.
    """

    graphmend: str
    command: str
    has_source: bool
    processes: tuple[Process, ...]
    totals: Totals
    sites: tuple[Site, ...]
    recompiled: tuple[Recompiled, ...]
    skipped: tuple[Skipped, ...]
    compilations: tuple[Compilation, ...]
    arguments: tuple[str, ...] = ()
    folder: str = ""
    known: tuple[Known, ...] = ()
    watched: tuple[Watched, ...] = ()


def as_json(trace: Trace) -> str:
    """The file's text."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(trace)}, indent=1) + "\n"


def read(path: Path) -> Trace:
    """The trace in a file. Raises `TraceError`, which names the file, when it is none that can be read."""
    try:
        data = json.loads(read_bytes(path, MOST_BYTES, "make it smaller with --no-source"))
    except SourceError as error:
        raise TraceError(
            f"{path}: {error}; record one with `graphmend trace -o {shlex.quote(str(path))} -- python your_script.py`"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is not a trace: {str(error).splitlines()[0]}") from error
    if not isinstance(data, dict) or not isinstance(data.get("schema"), int):
        raise TraceError(f"{path}: is not a trace: it has no schema; record one with `graphmend trace`")
    if data["schema"] != SCHEMA:
        raise TraceError(
            f"{path}: has schema {data['schema']}, and this graphmend reads {SCHEMA}; record it again, or "
            "install the version that wrote it"
        )
    try:
        return _of(Trace, data)
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{path}: is not a whole trace: {error}; record it again") from error


def _of(kind: type[Item], data: Any) -> Item:
    if not isinstance(data, Mapping):
        raise TypeError(f"{kind.__name__} must be an object")
    hints = get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name], field.name)
        elif field.default is dataclasses.MISSING:
            raise KeyError(f"{kind.__name__} has no {field.name}")
    return kind(**values)


def _value(kind: Any, value: Any, name: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _of(kind, value)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise TypeError(f"{name} must be a list")
        return tuple(_value(arguments[0], each, name) for each in value)
    if arguments:  # a union: the first that fits
        for one in arguments:
            try:
                return _value(one, value, name)
            except (TypeError, KeyError):
                continue
        raise TypeError(f"{name} has a value of another type")
    if kind is type(None):
        if value is None:
            return None
    elif isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise TypeError(f"{name} must be {kind.__name__}")
