"""What the child processes that measure share: options, limits, and results that are there whole or not at all.

This module does not import torch, so that a worktree comes first for torch's own imports too.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphmend_evaluation.worktree import LoadError

_PR_SET_PDEATHSIG = 1


def parser(module: str, description: str, *, one_model: bool = True) -> argparse.ArgumentParser:
    """A parser with `--root`, `--model`, `--out` and `--memory-bytes`; the first two are needed for `one_model`."""
    made = argparse.ArgumentParser(prog=f"graphmend_evaluation.{module}", description=description)
    made.add_argument("--root", type=Path, required=one_model, help="the worktree whose code is measured")
    made.add_argument("--model", required=one_model, help="package.module:factory")
    made.add_argument("--out", type=Path, required=True, help="a folder for the result")
    add_memory_option(made)
    return made


def add_pipes(made: argparse.ArgumentParser) -> None:
    """What `serve` needs."""
    made.add_argument("--requests", type=int, help="a pipe to read from")
    made.add_argument("--answers", type=int, help="a pipe to write to")


def add_memory_option(made: argparse.ArgumentParser) -> None:
    """What `begin` reads."""
    made.add_argument("--memory-bytes", type=int, help="limit of address space")


def begin(options: argparse.Namespace) -> None:
    """Keep to the limits, and make the folder for the result."""
    die_with_parent()
    if options.memory_bytes is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (options.memory_bytes, options.memory_bytes))
    if "out" in options:
        options.out.mkdir(parents=True, exist_ok=True)


def import_torch() -> None:
    """Import torch and Dynamo, at which the garbage collector looks neither now nor in any fork.

    Call it when the worktree's packages come first: they may have a say in what torch imports. Not where time is
    measured: a user's process collects.
    """
    gc.disable()
    try:
        importlib.import_module("torch._dynamo")
        gc.freeze()
    finally:
        gc.enable()


def die_with_parent() -> None:
    """The time limit is the parent's: a child that outlives a killed parent would have none."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def outcome(work: Callable[[], Any]) -> dict[str, Any]:
    """What `work` returns, or why it cannot."""
    try:
        return {"returned": work()}
    except LoadError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"failed": "out of memory"}
    except SystemExit as error:
        return {"failed": f"the model called sys.exit({error.code!r})"}
    except BaseException as error:  # the model is the user's code: whatever it raises costs its own row
        return {"failed": f"{type(error).__name__}: {one_line(str(error))}"}


def serve(requests: int, answers: int, answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer requests from one pipe to another, one line of JSON each, until the first is closed."""
    with os.fdopen(requests) as asked, os.fdopen(answers, "w") as said:
        for line in asked:
            said.write(json.dumps(outcome(functools.partial(answer, json.loads(line)))) + "\n")
            said.flush()


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(text.split())[:300]


def write_json(path: Path, value: Any, *, indent: int | None = None) -> None:
    """Write a file that a reader finds whole, whatever ends this process."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(value, indent=indent) + "\n", encoding="utf-8")
    unfinished.replace(path)
