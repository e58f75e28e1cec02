"""What processes wrote while they ran: lines of our recorder, or the logs of torch's own `TORCH_TRACE`.

Both become the same few events, so that everything behind reads one thing. Lines that cannot be read are left out: a
process that was killed leaves half of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

BREAK, RECOMPILE = "dynamo_graph_break_reason", "recompile_reasons"
_LOG_LINE = re.compile(r"^V\d{4} [^\]]*\] (\{.*\})\s*$")
_RANK = re.compile(r"_rank_(\d+)_")
# How Dynamo says that it leaves a frame to Python; anything else is an error, which most often ends the program.
_GIVEN_UP = frozenset({"Unsupported", "SkipFrame"})
# With `fullgraph=True` the first is an error; the second is one always: an operator failed on tensors without values.
_OF_A_LINE = frozenset({"Unsupported", "TorchRuntimeError"})


class Frame(NamedTuple):
    """A frame of a stack, as torch wrote it."""

    path: str
    line: int
    function: str


class Process(NamedTuple):
    """The head of a process's events."""

    program: str
    cwd: str
    torch: str
    python: str
    rank: str | None


class Start(NamedTuple):
    """Dynamo begins with a frame. `stack` leads there, outermost first."""

    frame: int | None
    compilation: int
    stack: tuple[Frame, ...]


class Known(NamedTuple):
    """What was known of the locals of one traced frame, by name, and the line that it had got to; 0 if not told."""

    path: str
    function: str
    facts: Mapping[str, Any]
    line: int = 0


class Break(NamedTuple):
    """A graph broke. `text` is torch's message, `known` what was known in the traced frames, outermost first."""

    frame: int | None
    compilation: int
    text: str
    known: tuple[Known, ...]


class Recompile(NamedTuple):
    """Why a frame is compiled once more; `text` holds a guard of each earlier compilation."""

    frame: int | None
    compilation: int
    text: str


class Compiled(NamedTuple):
    """A compilation came to its end. `operations` is None where it left no graph.

    `failed` says why it was given up, `failed_at` has the file and line of the user that Dynamo could not trace.
    """

    frame: int | None
    compilation: int
    path: str
    line: int
    function: str
    operations: int | None
    seconds: float
    thrown_away: float
    failed: str | None
    failed_at: tuple[str, int] | None = None


class Gap(NamedTuple):
    """How often the graph of a compilation ran behind another one of its thread, and the eager time in between."""

    frame: int | None
    compilation: int
    runs: int
    seconds: float


class End(NamedTuple):
    """The process ended by itself."""


Event = Process | Start | Break | Recompile | Compiled | Gap | End


def recorded(folder: Path) -> Iterator[list[Event]]:
    """The events of each process that wrote to `folder`, the first process first."""
    for path in sorted(folder.glob("*.jsonl"), key=lambda each: (each.stat().st_mtime_ns, each.name)):
        events = list(of_lines(path.read_text(encoding="utf-8", errors="replace").splitlines()))
        if any(not isinstance(event, (Process, End)) for event in events):
            yield events


def of_lines(lines: Iterable[str]) -> Iterator[Event]:
    """Events of lines that the recorder wrote."""
    for line in lines:
        try:
            data = json.loads(line)
            event = _event(data) if isinstance(data, dict) else None
        except (ValueError, TypeError, KeyError, IndexError):
            continue
        if event is not None:
            yield event


def _event(data: Mapping[str, Any]) -> Event | None:
    kind = data["e"]
    if kind == "process":
        rank = data.get("rank")
        return Process(str(data["program"]), str(data["cwd"]), str(data["torch"]), str(data["python"]), rank)
    if kind == "start":
        stack = tuple(Frame(str(path), int(line), str(name)) for path, line, name in data["stack"])
        return Start(data["f"], data["c"], stack)
    if kind == "break":
        return Break(data["f"], data["c"], str(data["text"]), tuple(_known(data.get("locals") or ())))
    if kind == "recompile":
        return Recompile(data["f"], data["c"], str(data["text"]))
    if kind == "compiled":
        return _compiled(data["f"], data["c"], data)
    if kind == "gap":
        return Gap(data["f"], data["c"], int(data["n"]), float(data["s"]))
    return End() if kind == "end" else None


def _known(frames: Iterable[Any]) -> Iterator[Known]:
    for path, function, facts, *line in frames if isinstance(frames, list) else ():
        if isinstance(facts, dict):
            yield Known(str(path), str(function), facts, int(line[0]) if line else 0)


def _compiled(frame: int | None, compilation: int, metrics: Mapping[str, Any]) -> Compiled | None:
    if metrics.get("is_forward") is False:  # a backward graph, compiled later: its forward has the frame
        return None
    kind = metrics.get("fail_type")
    failed = metrics.get("fail_reason") or kind
    if kind and failed != kind and kind not in _GIVEN_UP:
        failed = f"{kind}: {failed}"
    operations = metrics.get("graph_op_count")
    path, line = metrics.get("fail_user_frame_filename"), metrics.get("fail_user_frame_lineno")
    return Compiled(
        frame,
        compilation,
        str(metrics.get("co_filename") or ""),
        int(metrics.get("co_firstlineno") or 0),
        str(metrics.get("co_name") or ""),
        int(operations) if operations else None,
        float(metrics.get("entire_frame_compile_time_s") or 0.0),
        float(metrics.get("dynamo_time_before_restart_s") or 0.0),
        str(failed) if failed else None,
        (str(path), line) if kind in _OF_A_LINE and path and isinstance(line, int) and line > 0 else None,
    )


# -- TORCH_TRACE -----------------------------------------------------------------------------------------------------


def of_torch_trace(path: Path) -> list[Event]:
    """Events of a log that torch wrote below the folder that `TORCH_TRACE` named; empty for any other file."""
    match = _RANK.search(path.name)
    events: list[Event] = []
    strings: dict[int, str] = {}
    for metadata, payload in _log_records(path):
        if isinstance(metadata.get("str"), list):
            name, number = metadata["str"]
            strings[number] = name
        events += _of_record(metadata, payload, strings)
    if not events:
        return []
    return [Process(path.name, "", "", "", match[1] if match else None), *events, End()]


def _log_records(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    metadata: dict[str, Any] | None = None
    payload: list[str] = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("\t"):
                payload.append(line[1:])
                continue
            if metadata is not None:
                yield metadata, "".join(payload)
            metadata, payload = None, []
            match = _LOG_LINE.match(line)
            if match is not None:
                try:
                    decoded = json.loads(match[1])
                except ValueError:
                    continue
                metadata = decoded if isinstance(decoded, dict) else None
    if metadata is not None:
        yield metadata, "".join(payload)


def _of_record(metadata: Mapping[str, Any], payload: str, strings: Mapping[int, str]) -> Iterator[Event]:
    frame, compilation = metadata.get("frame_id"), int(metadata.get("frame_compile_id") or 0)
    artifact = metadata.get("artifact")
    if isinstance(artifact, dict):
        if artifact.get("name") == BREAK:
            yield Break(frame, compilation, payload, ())
        elif artifact.get("name") == RECOMPILE:
            yield Recompile(frame, compilation, payload)
    start = metadata.get("dynamo_start")
    if isinstance(start, dict):
        frames = start.get("stack") or ()
        named = (
            Frame(str(strings.get(each["filename"], each["filename"])), each["line"], each["name"]) for each in frames
        )
        yield Start(frame, compilation, tuple(named))
    metrics = metadata.get("compilation_metrics")
    if isinstance(metrics, dict):
        compiled = _compiled(frame, compilation, metrics)
        if compiled is not None:
            yield compiled
