"""Compile a model in several ways in a child process. Imports neither torch nor what is compiled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphmend_evaluation.compilations import INDUCTOR, Compilations, Compiled, Way
from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy, how_it_ended, run_with_model
from graphmend_evaluation.results import Status, from_json, to_json
from graphmend_evaluation.speed.caches import drop_caches, share_headers

_RESULT = "compilations.json"
# As a user compiles: torch itself decides which sizes are dynamic.
INDUCTOR_WAY = Way("inductor", dynamic=None, backend=INDUCTOR)


def compile_in_ways(
    worktree: Path,
    model: str,
    ways: Sequence[Way],
    *,
    folder: Path,
    policy: Policy = DEFAULT_POLICY,
    only_if_broken: bool = False,
) -> Compilations:
    """Compile `model` (`package.module:factory`) with the code of `worktree`, once for each of `ways`.

    With `only_if_broken` the others are left out when the first way has no break. Never raises for what the model or
    its factory does; a way during which the child had to be ended says so, and later ones are missing.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _RESULT).unlink(missing_ok=True)
    arguments = ["--ways", json.dumps(to_json(list(ways))), *(["--only-if-broken"] * only_if_broken)]
    ending = run_with_model("compile_ways", arguments, worktree, model, folder, policy)
    found = _read(folder / _RESULT)
    if ending.stopped is None and ending.returncode == 0 and found is not None:
        return found
    status = Status.CRASHED if ending.stopped is None else ending.stopped[0]
    message = how_it_ended(ending, folder)
    if found is None:
        return Compilations(model, status, message, ending.seconds)
    reached = ways[len(found.compiled) : len(found.compiled) + 1]
    stopped = tuple(Compiled(way, status, message, 0.0) for way in reached)
    return replace(found, compiled=(*found.compiled, *stopped), seconds=ending.seconds)


def compile_with_inductor(
    worktree: Path, model: str, *, folder: Path, headers: Path, policy: Policy = DEFAULT_POLICY
) -> Compiled:
    """`model` under Inductor, with torch's own choice of dynamic sizes, compared with eager mode call by call.

    `headers` is a folder for the C++ headers that Inductor compiles, which calls may share; the rest of what it keeps
    is removed.
    """
    share_headers(headers, folder)
    found = compile_in_ways(worktree, model, [INDUCTOR_WAY], folder=folder, policy=policy)
    share_headers(folder, headers)
    drop_caches(folder)
    if found.compiled:
        return found.compiled[0]
    return Compiled(INDUCTOR_WAY, found.status, found.message, found.seconds)


def _read(path: Path) -> Compilations | None:
    """None for what is not there or not whole."""
    try:
        return from_json(Compilations, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError):
        return None
