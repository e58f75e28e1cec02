"""Measure a model's speed at the base and at the head, both in turn. Imports neither torch nor what is measured."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy
from graphmend_evaluation.machine import load_average, this_machine
from graphmend_evaluation.results import Status, from_json
from graphmend_evaluation.speed.budget import Budget
from graphmend_evaluation.speed.caches import copy_caches, drop_caches
from graphmend_evaluation.speed.gpu import Gpu, gpu_as_found
from graphmend_evaluation.speed.options import DEFAULT_OPTIONS, SpeedOptions
from graphmend_evaluation.speed.processes import MeasureError, Partner, answered, ask_once, partners
from graphmend_evaluation.speed.results import Cold, ProfileCounts, SpeedMachine, SpeedRow, Steady
from graphmend_evaluation.speed.together import cold_result, steady_result
from graphmend_evaluation.speed.turns import Turns

_MODULE = "graphmend_evaluation.speed.child"
_ARMS = ("base", "head")
_EAGER, _REDUCE_OVERHEAD = "eager", "reduce-overhead"
_TRIAL_PASSES = 3
_FEWEST_PASSES, _MOST_PASSES = 3, 500
_FEWEST_ROUNDS = 6
_BUSY = 0.5

Answer = Mapping[str, Any]
_Result = TypeVar("_Result")


def measure_speed(
    base: Path,
    head: Path,
    model: str,
    *,
    folder: Path,
    policy: Policy = DEFAULT_POLICY,
    options: SpeedOptions = DEFAULT_OPTIONS,
    seed: Path | None = None,
    progress: Callable[[str], None] = lambda line: None,
    turns: Turns | None = None,
) -> SpeedRow:
    """Time `model` (`package.module:factory`) in the worktrees `base` and `head`, with the same weights and inputs.

    `folder` receives what the processes write; each of them keeps to `policy`, its time limit for a single answer.
    `seed` is a folder for what the first start of the compiler leaves; calls with the same `options` may share it.
    `turns` is shared by calls in other threads, so that models compile at the same time and are timed alone.
    Never raises for what the model or its factory does; the row's status says it.
    """
    started = time.monotonic()
    loads = [load_average()]
    folder = folder.resolve()
    seed = folder / "seed" if seed is None else seed.resolve()
    trees = (base.resolve(), head.resolve())
    found = _Measurement(trees, model, folder, seed, policy, options, progress, turns or Turns()).measure()
    loads.append(load_average())
    machine = _machine(found, loads)
    if max(loads) - 1 > machine.cores * _BUSY:  # one is this measurement's own
        found.remarks.append(
            f"the machine was busy (load average {max(loads):.1f} on {machine.cores} cores): "
            "believe counts and processor times more than wall times"
        )
    return SpeedRow(
        model=model,
        status=found.status,
        message="; ".join(found.failures),
        seconds=round(time.monotonic() - started, 1),
        device=found.device,
        backend=found.backend,
        date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        machine=machine,
        versions=found.versions,
        cold=found.cold,
        steady=tuple(found.steady),
        remarks=tuple(found.remarks),
    )


@dataclass
class _Found:
    """A row in the making."""

    status: Status = Status.OK
    failures: list[str] = field(default_factory=list)
    device: str = ""
    gpu: Gpu = field(default_factory=Gpu)
    backend: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    cold: Cold | None = None
    steady: list[Steady] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def failed(self, error: MeasureError, what: str) -> None:
        """Keep why something was not measured; the first failure gives the row its status."""
        if self.status is Status.OK:
            self.status = error.status
        self.failures.append(f"{what}: {error}")


class _Measurement:
    def __init__(
        self,
        trees: tuple[Path, Path],
        model: str,
        folder: Path,
        seed: Path,
        policy: Policy,
        options: SpeedOptions,
        progress: Callable[[str], None],
        turns: Turns,
    ) -> None:
        self._trees = trees
        self._model = model
        self._folder = folder
        self._seed_folder = seed
        self._policy = policy
        self._options = options
        self._progress = progress
        self._turns = turns
        self._budget = Budget(options.budget_s)
        self._calls: list[int] = []
        self._gpu_uuid = ""
        self._found = _Found()

    def measure(self) -> _Found:
        """Everything that is asked for; what fails costs only itself."""
        found = self._found
        try:
            with self._turns.compiling():
                with self._turns.starting:
                    self._seed()
                self._probe()
        except MeasureError as error:
            found.failed(error, "before the first measurement")
            return found
        if self._options.cold:
            try:
                found.cold = self._cold()
            except MeasureError as error:
                found.failed(error, "cold start")
        if self._options.rounds:
            self._steady()
        return found

    def _seed(self) -> None:
        arguments = ["seed", "--device", self._options.device, "--backend", self._options.backend]
        if (answer := answered(self._seed_folder)) is None:
            self._progress("starting the compiler once")
            answer = self._ask_once(self._seed_folder, arguments, self._trees[0])
        self._found.device, self._found.backend = answer["device"], answer["backend"]
        if answer["device"] == "cuda":
            self._gpu_uuid = answer["gpu_uuid"]
            driver = gpu_as_found(self._gpu_uuid)
            self._found.gpu = replace(driver, name=answer["gpu"])
        if answer["remark"]:
            self._found.remarks.append(answer["remark"])

    def _probe(self) -> None:
        self._progress("running it once in eager mode")
        answer = self._ask_once(self._folder / "probe", self._about("probe", pins=False), self._trees[0])
        self._calls = answer["calls"]
        self._found.versions = tuple((name, version) for name, version in answer["versions"])
        self._found.remarks += [f"{error}: left out" for error in answer["errors"]]
        if not self._calls:
            raise MeasureError(Status.FAILED, f"the model raises in eager mode: {answer['errors'][0]}")

    def _cold(self) -> Cold:
        answers: tuple[list[Answer], list[Answer]] = ([], [])
        count = self._options.cold
        for number in range(count):
            # What follows takes about as long as one more: the same processes, with what they compile in their caches.
            if number and not self._budget.allows(2 if self._options.rounds else 1):
                self._remark(f"{number} of {count} cold starts an arm fitted into {self._budget}")
                break
            with self._budget.one():
                order = _order(number)
                for arm, answer in zip(order, self._of_each(order, partial(self._cold_start, number)), strict=True):
                    answers[arm].append(answer)
        return cold_result(*answers)

    def _cold_start(self, number: int, arm: int) -> Answer:
        self._progress(f"cold start {number + 1} of {self._options.cold}, {_ARMS[arm]}")
        folder = self._folder / f"cold-{number}-{arm}"
        copy_caches(self._seed_folder, folder)
        arguments = [*self._about("cold"), "--backend", self._found.backend]
        with self._turns.compiling():
            answer: Answer = self._ask_once(folder, arguments, self._trees[arm])
        if number:  # the first one's serve the steady state
            drop_caches(folder)
        return answer

    def _of_each(self, order: Sequence[int], ask: Callable[[int], _Result]) -> list[_Result]:
        """What `ask` returns for each number, in this order: one after the other, or all at the same time."""
        if not self._options.arms_at_once:
            return [ask(each) for each in order]
        with ThreadPoolExecutor(len(order)) as threads:
            return list(threads.map(ask, order))

    def _steady(self) -> None:
        """The steady state of every configuration, all in the same processes; what fails costs only itself."""
        most = self._options.processes
        processes = most if self._budget.left() and self._budget.allows(most) else 1
        if processes == 1:
            self._remark("one process an arm: what chance alone does to a process is not in the noise")
        slots = [(arm, number) for number in range(processes) for arm in (0, 1)]
        folders = [self._folder / f"steady-{arm}-{number}" for arm, number in slots]
        trees = [self._trees[arm] for arm, _ in slots]
        arguments = [[*self._about("steady"), "--root", str(tree)] for tree in trees]
        for (arm, _), folder in zip(slots, folders, strict=True):
            folder.mkdir(parents=True, exist_ok=True)
            known = self._folder / f"cold-0-{arm}"
            copy_caches(known if self._found.cold is not None else self._seed_folder, folder)
        with partners(arguments, worktrees=trees, folders=folders, policy=self._policy) as children:
            warm = [configuration for configuration in self._configurations() if self._warm_up(configuration, children)]
            with self._turns.timing():
                timed = self._timed(warm, children)
                if self._found.device == "cuda":  # clocks of an idle GPU would say nothing
                    self._found.gpu = replace(self._found.gpu, clocks=gpu_as_found(self._gpu_uuid).clocks)
                # The profiler comes last: it may leave something behind that slows calls down.
                counts = {configuration: self._profiles(configuration, children) for configuration in timed}
        for configuration, (blocks, peaks) in timed.items():
            found = steady_result(configuration, blocks[0::2], blocks[1::2], peaks, counts[configuration])
            self._found.steady.append(found)
        for folder in (*folders, *(self._folder / f"cold-0-{arm}" for arm in (0, 1))):
            drop_caches(folder)

    def _timed(
        self, configurations: Sequence[str], children: Sequence[Partner]
    ) -> dict[str, tuple[list[list[Answer]], list[int | None]]]:
        """Blocks and memory of each configuration; one that fails is left out."""
        timed = {}
        for configuration in configurations:
            try:
                timed[configuration] = self._blocks(configuration, children), self._peaks(configuration, children)
            except MeasureError as error:
                self._found.failed(error, configuration)
        return timed

    def _warm_up(self, configuration: str, children: Sequence[Partner]) -> bool:
        """Whether all processes can be timed now."""
        try:
            for first in range(0, len(children), 2):
                self._of_each((first, first + 1), partial(self._warm_up_one, configuration, children))
        except MeasureError as error:
            self._found.failed(error, configuration)
            return False
        return True

    def _warm_up_one(self, configuration: str, children: Sequence[Partner], place: int) -> None:
        arm, number = place % 2, place // 2
        self._progress(f"{configuration}: warming up process {number + 1} of {_ARMS[arm]}")
        if number:
            copy_caches(children[arm].folder, children[place].folder)
        with self._turns.compiling():
            settled = children[place].ask(configuration, "warm_up")["settled"]
        if not settled:
            self._remark(f"{configuration}: {_ARMS[arm]} still compiles after its warm-up")

    def _blocks(self, configuration: str, children: Sequence[Partner]) -> list[list[Answer]]:
        """Blocks of each child by rounds. Every other round runs backwards, so that a drift hits all alike."""
        trial = [median(child.ask(configuration, "block", passes=_TRIAL_PASSES)["seconds"]) for child in children]
        one_pass = max(trial) * len(self._calls)
        passes = min(max(round(self._options.block_s / max(one_pass, 1e-6)), _FEWEST_PASSES), _MOST_PASSES)
        blocks: list[list[Answer]] = [[] for _ in children]
        for number in range(self._options.rounds):
            if number >= _FEWEST_ROUNDS and not self._budget.left():
                self._remark(f"{configuration}: {number} of {self._options.rounds} rounds fitted into {self._budget}")
                break
            self._progress(f"{configuration}: round {number + 1} of {self._options.rounds}")
            order = range(len(children))
            for i in order if number % 2 == 0 else reversed(order):
                blocks[i].append(children[i].ask(configuration, "block", passes=passes))
        return blocks

    def _peaks(self, configuration: str, children: Sequence[Partner]) -> list[int | None]:
        """Memory of the first process of each arm."""
        return [child.ask(configuration, "peak_bytes", passes=_TRIAL_PASSES) for child in children[:2]]

    def _profiles(self, configuration: str, children: Sequence[Partner]) -> list[ProfileCounts | None]:
        """Counts of the profiler in the first process of each arm."""
        if not self._options.profile:
            return [None, None]
        self._progress(f"{configuration}: counting with the profiler")
        try:
            return [from_json(ProfileCounts, child.ask(configuration, "profile")) for child in children[:2]]
        except MeasureError as error:
            self._remark(f"{configuration}: nothing counted, the profiler failed: {error}")
            return [None, None]

    def _remark(self, line: str) -> None:
        if line not in self._found.remarks:
            self._found.remarks.append(line)

    def _configurations(self) -> tuple[str, ...]:
        if self._options.configurations is not None:
            return self._options.configurations
        more = (_REDUCE_OVERHEAD,) if self._found.device == "cuda" else ()
        return (_EAGER, self._found.backend, *more)

    def _about(self, role: str, *, pins: bool = True) -> list[str]:
        options = [role, "--model", self._model, "--device", self._options.device]
        options += ["--threads", str(self._options.threads)]
        if pins:
            calls = ",".join(map(str, self._calls))
            options += ["--pins", str(self._folder / "probe"), "--calls", calls]
        return options

    def _ask_once(self, folder: Path, arguments: Sequence[str], tree: Path) -> Any:
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [*arguments, "--root", str(tree)]
        return ask_once(_MODULE, arguments, worktree=tree, folder=folder, policy=self._policy)


def _order(number: int) -> tuple[int, int]:
    return (0, 1) if number % 2 == 0 else (1, 0)


def _machine(found: _Found, loads: Sequence[float]) -> SpeedMachine:
    machine = this_machine()
    return SpeedMachine(
        processor=machine.processor,
        cores=machine.cores,
        system=machine.system,
        load=tuple(loads),
        gpu=found.gpu.name,
        driver=found.gpu.driver,
        clocks=found.gpu.clocks,
    )
