"""The XLA view of a model at the base and at the head. Imports neither torch nor what is measured."""

from __future__ import annotations

import contextlib
import datetime
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy
from graphmend_evaluation.results import Status, from_json
from graphmend_evaluation.speed.processes import MeasureError, Partner, ask_once
from graphmend_evaluation.speed.results import Difference
from graphmend_evaluation.speed.statistics import difference, spread
from graphmend_evaluation.xla.metrics import classify
from graphmend_evaluation.xla.results import XlaArm, XlaRow, XlaRun

_MODULE = "graphmend_evaluation.xla.child"
_MODES = ("openxla", "lazy")
_ROUNDS = 16
_PASSES = 3


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
    processes write, four for a model: each arm and mode has one of its own. They count one after the other, and are
    then timed in turn. Never raises for what the model or its environment does; the arms' statuses say it.
    """
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")
    with _Children(model, folder.resolve(), policy, python, progress) as children:
        try:
            about = children.check(base)
        except MeasureError as error:
            arm = XlaArm(error.status, str(error))
            return XlaRow(model, arm, arm, date=date)
        arms = {"before": children.count("before", base), "after": children.count("after", head)}
        times = children.timed()
    versions = tuple((name, version) for name, version in about["versions"])
    before, after = (_with_times(arms[name], name, times) for name in ("before", "after"))
    row = XlaRow(model, before, after, versions, about["device"], date)
    return replace(row, compiled=_change(times, "openxla"), lazy=_change(times, "lazy"))


def torch_xla_problem(python: Path | None, folder: Path, policy: Policy = DEFAULT_POLICY) -> str | None:
    """None when torch_xla works with `python`, else one line that says what is missing and how to get it."""
    try:
        _Children("", folder.resolve(), policy, python, lambda line: None).check(folder)
    except MeasureError as error:
        return str(error)
    return None


_Times = Mapping[tuple[str, str], list[float]]


def _with_times(arm: XlaArm, name: str, times: _Times) -> XlaArm:
    def timed(run: XlaRun | None, mode: str) -> XlaRun | None:
        seconds = times.get((name, mode))
        if run is None or not seconds:
            return run
        return replace(run, seconds=statistics.median(seconds), noise=spread(seconds).noise)

    return replace(arm, openxla=timed(arm.openxla, "openxla"), lazy=timed(arm.lazy, "lazy"))


def _change(times: _Times, mode: str) -> Difference | None:
    before, after = times.get(("before", mode)), times.get(("after", mode))
    return difference(before, after) if before and after else None


class _Children(contextlib.ExitStack):
    """The processes of one model. They end with the `with` block."""

    def __init__(
        self, model: str, folder: Path, policy: Policy, python: Path | None, progress: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._model = model
        self._folder = folder
        self._policy = policy
        # A link into another environment must stay one: resolved, it would be the interpreter without its packages.
        self._python = None if python is None else python.absolute()
        self._progress = progress
        self._pins: Path | None = None
        self._partners: dict[tuple[str, str], Partner] = {}

    def check(self, tree: Path) -> Any:
        """Which versions there are."""
        folder = self._made("check")
        arguments = self._arguments("check", tree)
        return ask_once(_MODULE, arguments, worktree=tree, folder=folder, policy=self._policy, python=self._python)

    def count(self, name: str, tree: Path) -> XlaArm:
        """One arm in both modes. The first process that loads the model saves weights and inputs for the rest."""
        found: dict[str, XlaRun] = {}
        for mode in _MODES:
            self._progress(f"{name}: {mode}")
            folder = self._made(f"{name}-{mode}")
            try:
                partner = self.enter_context(self._start(mode, tree, folder))
                found[mode] = from_json(XlaRun, partner.ask(mode, "count"))
            except MeasureError as error:
                return XlaArm(error.status, f"{mode}: {error}", found.get("openxla"), found.get("lazy"))
            self._partners[name, mode] = partner
            if self._pins is None:
                self._pins = folder
        splits, words = classify(found["openxla"], found["lazy"])
        return XlaArm(Status.OK, "", found["openxla"], found["lazy"], splits, words)

    def timed(self) -> dict[tuple[str, str], list[float]]:
        """Seconds of a call in each round, of every process that counted. One that fails now has no times."""
        self._progress("timing in turn")
        seconds: dict[tuple[str, str], list[float]] = {key: [] for key in self._partners}
        for number in range(_ROUNDS):
            for key in sorted(seconds, reverse=number % 2 == 1):
                try:
                    seconds[key].append(self._partners[key].ask(key[1], "time", passes=_PASSES))
                except MeasureError:
                    del seconds[key]
        return seconds

    def _start(self, mode: str, tree: Path, folder: Path) -> Partner:
        arguments = self._arguments(mode, tree)
        try:
            return Partner(
                arguments, worktree=tree, folder=folder, policy=self._policy, module=_MODULE, python=self._python
            )
        except OSError as error:
            raise MeasureError(Status.FAILED, f"{self._python} cannot be started: {error.strerror}") from error

    def _arguments(self, mode: str, tree: Path) -> list[str]:
        arguments = ["--mode", mode, "--root", str(tree.resolve()), "--model", self._model]
        return arguments if self._pins is None else [*arguments, "--pins", str(self._pins)]

    def _made(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder
