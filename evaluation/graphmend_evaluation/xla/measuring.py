"""The XLA view of a model at the base and at the head. Imports neither torch nor what is measured."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy
from graphmend_evaluation.results import Status, from_json
from graphmend_evaluation.speed.processes import MeasureError, ask_once
from graphmend_evaluation.xla.metrics import classify
from graphmend_evaluation.xla.results import XlaArm, XlaRow, XlaRun

_MODULE = "graphmend_evaluation.xla.child"
_MODES = ("openxla", "lazy")


def measure_xla(
    base: Path,
    head: Path,
    model: str,
    *,
    folder: Path,
    policy: Policy = DEFAULT_POLICY,
    python: Path | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> XlaRow:
    """Run `model` (`package.module:factory`) of both worktrees under torch_xla, with the same weights and inputs.

    `python` is the interpreter of an environment with torch_xla, this one by default. `folder` receives what the
    processes write, four for a model: each arm and mode has one of its own. Never raises for what the model or its
    environment does; the arms' statuses say it.
    """
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")
    child = _Child(model, folder.resolve(), policy, python, progress)
    try:
        about = child.ask("check", base, "check")
    except MeasureError as error:
        arm = XlaArm(error.status, str(error))
        return XlaRow(model, arm, arm, date=date)
    versions = tuple((name, version) for name, version in about["versions"])
    before, after = child.arm("before", base), child.arm("after", head)
    return XlaRow(model, before, after, versions, about["device"], date)


def torch_xla_problem(python: Path | None, folder: Path, policy: Policy = DEFAULT_POLICY) -> str | None:
    """None when torch_xla works with `python`, else one line that says what is missing and how to get it."""
    try:
        _Child("", folder.resolve(), policy, python, lambda line: None).ask("check", folder, "check")
    except MeasureError as error:
        return str(error)
    return None


class _Child:
    def __init__(
        self, model: str, folder: Path, policy: Policy, python: Path | None, progress: Callable[[str], None]
    ) -> None:
        self._model = model
        self._folder = folder
        self._policy = policy
        # A link into another environment must stay one: resolved, it would be the interpreter without its packages.
        self._python = None if python is None else python.absolute()
        self._progress = progress
        self._pins: Path | None = None

    def arm(self, name: str, tree: Path) -> XlaArm:
        """One arm in both modes."""
        found: dict[str, XlaRun] = {}
        for mode in _MODES:
            self._progress(f"{name}: {mode}")
            try:
                found[mode] = from_json(XlaRun, self.ask(mode, tree, f"{name}-{mode}"))
            except MeasureError as error:
                return XlaArm(error.status, f"{mode}: {error}", found.get("openxla"), found.get("lazy"))
        splits, words = classify(found["openxla"], found["lazy"])
        return XlaArm(Status.OK, "", found["openxla"], found["lazy"], splits, words)

    def ask(self, mode: str, tree: Path, name: str) -> Any:
        """What a child in `mode` answers. The first one that loads the model saves weights and inputs for the rest."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        arguments = ["--mode", mode, "--root", str(tree.resolve()), "--model", self._model]
        if self._pins is not None:
            arguments += ["--pins", str(self._pins)]
        found = ask_once(_MODULE, arguments, worktree=tree, folder=folder, policy=self._policy, python=self._python)
        if mode != "check" and self._pins is None:
            self._pins = folder
        return found
