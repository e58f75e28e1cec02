"""Record models in child processes, within the limits in which they are measured: see `isolation`.

Imports neither torch nor any code that is recorded.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_codemod.trace import document
from graphmend_codemod.trace.document import Trace, TraceError
from graphmend_evaluation.isolation import DEFAULT_POLICY, Ending, Policy, how_it_ended, run_child
from graphmend_evaluation.names import needs_network
from graphmend_evaluation.results import from_json

TRACE = "trace.json"
_START = (
    "import os, sys; sys.path[:] = [p for p in sys.path if p]; sys.path += sys.argv.pop(1).split(os.pathsep); "
    "import runpy; "
    "runpy.run_module('graphmend_evaluation.tracing.record_model', run_name='__main__', alter_sys=True)"
)


@dataclass(frozen=True)
class Recording:
    """How the recording of one model went. `message` says in one line why there is no trace, and is empty otherwise.

    `calls` were recorded, and `events` break events met in them. `seconds` is wall time.
    """

    model: str
    message: str = ""
    calls: int = 0
    events: int = 0
    seconds: float = 0.0


def record_model(
    worktree: Path, model: str, *, folder: Path, policy: Policy = DEFAULT_POLICY
) -> tuple[Recording, Trace | None]:
    """Record `model`, a name as `names` has it, with the code of `worktree`, in a child process of its own.

    `folder` is made, and receives the trace and the streams. Never raises for what the model or its factory does: the
    recording's message says it, and then there is no trace.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("result.json", TRACE):
        (folder / name).unlink(missing_ok=True)
    own = [str(Path(file).resolve().parents[up]) for file, up in ((__file__, 2), (document.__file__, 2))]
    command = [sys.executable, "-c", _START, os.pathsep.join(own)]
    command += ["--root", str(worktree.resolve()), "--model", model, "--out", str(folder)]
    if policy.memory_bytes is not None:
        command += ["--memory-bytes", str(policy.memory_bytes)]
    ending = run_child(command, worktree, folder, replace(policy, network=policy.network or needs_network(model)))
    recording = _read(folder, model, ending)
    if recording.message:
        return recording, None
    try:
        return recording, document.read(folder / TRACE)
    except TraceError as error:
        return replace(recording, message=str(error)), None


def _read(folder: Path, model: str, ending: Ending) -> Recording:
    if ending.stopped is not None:
        return Recording(model, how_it_ended(ending, folder), seconds=ending.seconds)
    try:
        return from_json(Recording, json.loads((folder / "result.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Recording(model, how_it_ended(ending, folder), seconds=ending.seconds)
    except (ValueError, TypeError, KeyError) as error:
        return Recording(model, f"unreadable result: {error}", seconds=ending.seconds)
