"""Run a command with the recorder in each of its Python processes, and gather what they wrote."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from graphmend_codemod.trace import break_text, events, watched
from graphmend_codemod.trace.collect import Collector
from graphmend_codemod.trace.document import Trace, TraceError
from graphmend_codemod.trace.paths import Paths

_LOOK_EVERY = 0.25
FOLDER, COMPILE = "GRAPHMEND_TRACE_FOLDER", "GRAPHMEND_TRACE_COMPILE"
WATCH = "GRAPHMEND_TRACE_WATCH"


class Outcome(NamedTuple):
    """What came of a run. `exit_code` is the command's, as a shell would tell it.

    `heard` is False where no Python of the command started the recorder.
    """

    trace: Trace
    exit_code: int
    heard: bool = True


def bootstrap() -> Path:
    """The folder whose `sitecustomize` starts the recorder. Raises `TraceError` where it is not installed."""
    from importlib.util import find_spec

    spec = find_spec("graphmend_evaluation")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        found = Path(folder) / "tracing" / "bootstrap"
        if found.is_dir():
            return found
    raise TraceError("the recorder is not installed beside graphmend; install graphmend once more")


def run(
    command: Sequence[str],
    root: Path,
    *,
    compile_auto: bool = False,
    source: bool = True,
    progress: Callable[[str], None] | None = None,
    folder: Path | None = None,
) -> Outcome:
    """Run `command` in a folder, the current one by default, with its own input and output, and return the trace.

    However the command ends, by an exception, a signal or Ctrl-C, there is a trace of what happened until then.
    `progress` is told of each new site while it runs. Raises `TraceError` when the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="graphmend-trace-") as records:
        environment = _environment(records, compile_auto)
        watch = _Watch(Path(records), root, progress)
        begun = time.perf_counter()
        with _signals_for_child() as children:
            try:
                child = subprocess.Popen(command, env=environment, cwd=folder)
            except OSError as error:
                raise TraceError(_not_started(command[0], error)) from error
            children.append(child)
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = child.wait(_LOOK_EVERY)
                    break
                watch.look()
        trace = gathered(Path(records), root, _name(command), source=source)
        wall = round(time.perf_counter() - begun, 3)
        trace = dataclasses.replace(trace, totals=dataclasses.replace(trace.totals, wall=wall))
        return Outcome(trace, code if code >= 0 else 128 - code, (Path(records) / "started").exists())


def with_calls(trace: Trace, command: Sequence[str], root: Path) -> Trace:
    """The trace with what the functions that broke held, in another run of the command: without torch.compile.

    Raises `TraceError` when the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="graphmend-trace-") as records:
        places = Path(records) / "places"
        places.write_text(json.dumps(watched.places(trace, root)), encoding="utf-8")
        environment = {**_environment(records, False), WATCH: str(places), "TORCH_COMPILE_DISABLE": "1"}
        with _signals_for_child() as children:
            try:
                child = subprocess.Popen(command, env=environment)
            except OSError as error:
                raise TraceError(_not_started(command[0], error)) from error
            children.append(child)
            child.wait()
        return dataclasses.replace(trace, watched=watched.of_folder(Path(records), root))


def with_command(trace: Trace, command: Sequence[str], root: Path) -> Trace:
    """The trace with the command that was run and the folder, for those who want to run it again from the file."""
    folder = os.path.relpath(os.getcwd(), root).replace(os.sep, "/")
    return dataclasses.replace(trace, arguments=tuple(command), folder=folder)


def again(before: Trace, root: Path, *, progress: Callable[[str], None] | None = None) -> Outcome:
    """Run the command of a trace again, in its folder below `root`. Raises `TraceError` where it was not kept."""
    if not before.arguments:
        raise TraceError(
            "the trace does not have the arguments of its command: record it with `graphmend trace --keep-command`, "
            "or run `graphmend trace --compare TRACE -- COMMAND` yourself"
        )
    folder = (root / before.folder).resolve()
    if not folder.is_dir() or not folder.is_relative_to(root.resolve()):
        raise TraceError(f"{before.folder}: the folder in which the trace was recorded is not below {root}")
    return run(before.arguments, root, source=before.has_source, progress=progress, folder=folder)


def gathered(folder: Path, root: Path, command: str, *, source: bool = True) -> Trace:
    """The trace of what processes wrote to a folder."""
    collector = Collector(root)
    for process in events.recorded(folder):
        collector.add(process)
    return collector.trace(command, source=source)


def imported(folder: Path, root: Path, *, source: bool = True) -> Trace:
    """The trace of logs that torch wrote to a folder, or to a file, under `TORCH_TRACE`.

    Raises `TraceError` when there are none.
    """
    paths = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    collector, number = Collector(root), 0
    for path in paths:
        try:
            found = events.of_torch_trace(path)
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
        if found:
            collector.add(found)
            number += 1
    if not number:
        raise TraceError(
            f"{folder}: holds no log of TORCH_TRACE; run the program with `TORCH_TRACE={folder}` in its environment"
        )
    return collector.trace(folder.name, source=source)


def _not_started(program: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and os.sep not in program:
        return f"{program}: not found: activate the environment that has it, or write its path"
    return f"{program}: cannot be run: {error.strerror}; write `graphmend trace -- python ...`"


def _environment(folder: str, compile_auto: bool) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(bootstrap()), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, FOLDER: folder}
    environment.pop(COMPILE, None)
    return environment | {COMPILE: "auto"} if compile_auto else environment


def _name(command: Sequence[str]) -> str:
    """The program without its arguments, which may hold what is nobody's business."""
    words = [os.path.basename(command[0])]
    for number, word in enumerate(command[1:], 1):
        if word.startswith("-") and word != "-m":
            break
        words.append(word)
        if word != "-m" and number:
            break
    return " ".join(words)


@contextlib.contextmanager
def _signals_for_child() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Let signals end the child and not us: Ctrl-C reaches it from the terminal, SIGTERM is handed on."""
    children: list[subprocess.Popen[bytes]] = []

    def hand_on(signum: int, _: FrameType | None) -> None:
        for child in children:
            if child.poll() is None:
                child.send_signal(signum)

    def wait(signum: int, _: FrameType | None) -> None:
        """The terminal sends it to the child as well."""

    earlier = {}
    try:
        for name, handler in (("SIGINT", wait), ("SIGTERM", hand_on), ("SIGHUP", hand_on)):
            signum = getattr(signal, name, None)
            if signum is not None:
                with contextlib.suppress(ValueError):  # not the main thread
                    earlier[signum] = signal.signal(signum, handler)
        yield children
    finally:
        for signum, before in earlier.items():
            signal.signal(signum, before)


class _Watch:
    """Looks at what processes write while they run, and tells of each new site once."""

    def __init__(self, folder: Path, root: Path, progress: Callable[[str], None] | None) -> None:
        self._folder = folder
        self._paths = Paths(root, "")
        self._progress = progress
        self._read: dict[Path, int] = {}
        self._known: set[tuple[str, int, str]] = set()

    def look(self) -> None:
        """Read what is new."""
        if self._progress is None:
            return
        for path in self._folder.glob("*.jsonl"):
            with open(path, "rb") as file:
                file.seek(self._read.get(path, 0))
                new = file.read().rpartition(b"\n")[0]
            if new:
                self._read[path] = self._read.get(path, 0) + len(new) + 1
                self._tell(events.of_lines(new.decode("utf-8", "replace").splitlines()))

    def _tell(self, found: Iterator[events.Event]) -> None:
        assert self._progress is not None
        for event in found:
            text = break_text.parse(event.text) if isinstance(event, events.Break) else None
            if text is None or not text.frames:
                continue
            frame = text.frames[-1]
            key = (frame.path, frame.line, text.kind)
            if key not in self._known:
                self._known.add(key)
                shown = self._paths.place(frame.path, frame.line, "").path
                self._progress(f"graph break {len(self._known)}: {shown}:{frame.line}: {text.kind}")


def command_of(program: Sequence[str], module: Sequence[str], tests: str | None, model: str | None) -> list[str]:
    """The command that the options ask for: a program, a module, pytest, or a model's factory."""
    if model is not None:
        return [sys.executable, "-m", "graphmend_evaluation.tracing.run_model", model]
    if tests is not None:
        import shlex

        return [sys.executable, "-m", "pytest", *shlex.split(tests)]
    if module:
        return [sys.executable, "-m", *module]
    words = list(program[1:] if program[:1] == ["--"] else program)
    return [sys.executable, *words] if words and words[0].endswith(".py") else words
