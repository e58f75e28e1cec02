"""Measure a model's speed at the base and at the head, both in turn. Imports neither torch nor what is measured."""

from __future__ import annotations

import datetime
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy
from graphmend_evaluation.machine import load_average, this_machine
from graphmend_evaluation.results import Status, from_json
from graphmend_evaluation.speed.gpu import Gpu, gpu_as_found
from graphmend_evaluation.speed.options import DEFAULT_OPTIONS, SpeedOptions
from graphmend_evaluation.speed.processes import MeasureError, Partner, ask_once, partners
from graphmend_evaluation.speed.results import (
    Cold,
    ColdCall,
    Compared,
    ProfileCounts,
    SpeedMachine,
    SpeedRow,
    Steady,
)
from graphmend_evaluation.speed.statistics import apart, compared, difference, spread

_MODULE = "graphmend_evaluation.speed.child"
_EAGER, _REDUCE_OVERHEAD = "eager", "reduce-overhead"
_TRIAL_PASSES = 3
_FEWEST_PASSES, _MOST_PASSES = 3, 500
_BUSY = 0.5
_CACHES = ("inductor", "triton")

Answer = Mapping[str, Any]


def measure_speed(
    base: Path,
    head: Path,
    model: str,
    *,
    folder: Path,
    policy: Policy = DEFAULT_POLICY,
    options: SpeedOptions = DEFAULT_OPTIONS,
    progress: Callable[[str], None] = lambda line: None,
) -> SpeedRow:
    """Time `model` (`package.module:factory`) in the worktrees `base` and `head`, with the same weights and inputs.

    `folder` receives what the processes write; each of them keeps to `policy`, its time limit for a single answer.
    Never raises for what the model or its factory does; the row's status says it.
    """
    started = time.monotonic()
    loads = [load_average()]
    measurement = _Measurement((base.resolve(), head.resolve()), model, folder.resolve(), policy, options, progress)
    found = measurement.measure()
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
        policy: Policy,
        options: SpeedOptions,
        progress: Callable[[str], None],
    ) -> None:
        self._trees = trees
        self._model = model
        self._folder = folder
        self._policy = policy
        self._options = options
        self._progress = progress
        self._calls: list[int] = []
        self._gpu_uuid = ""
        self._found = _Found()

    def measure(self) -> _Found:
        """Everything that is asked for; what fails costs only itself."""
        found = self._found
        try:
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
        if self._options.rounds and self._options.processes == 1:
            self._remark("one process an arm: what chance alone does to a process is not in the noise")
        for configuration in self._configurations() if self._options.rounds else ():
            try:
                found.steady.append(self._steady(configuration))
            except MeasureError as error:
                found.failed(error, configuration)
        return found

    def _seed(self) -> None:
        self._progress("starting the compiler once")
        arguments = ["seed", "--device", self._options.device, "--backend", self._options.backend]
        answer = self._ask_once("seed", arguments, self._trees[0])
        self._found.device, self._found.backend = answer["device"], answer["backend"]
        if answer["device"] == "cuda":
            self._gpu_uuid = answer["gpu_uuid"]
            driver = gpu_as_found(self._gpu_uuid)
            self._found.gpu = replace(driver, name=answer["gpu"])
        if answer["remark"]:
            self._found.remarks.append(answer["remark"])

    def _probe(self) -> None:
        self._progress("running it once in eager mode")
        answer = self._ask_once("probe", self._about("probe", pins=False), self._trees[0])
        self._calls = answer["calls"]
        self._found.versions = tuple((name, version) for name, version in answer["versions"])
        self._found.remarks += [f"{error}: left out" for error in answer["errors"]]
        if not self._calls:
            raise MeasureError(Status.FAILED, f"the model raises in eager mode: {answer['errors'][0]}")

    def _cold(self) -> Cold:
        answers: tuple[list[Answer], list[Answer]] = ([], [])
        for number in range(self._options.cold):
            self._progress(f"cold start {number + 1} of {self._options.cold}")
            for arm in _order(number):
                name = f"cold-{number}-{arm}"
                self._copy_caches("seed", name)
                arguments = [*self._about("cold"), "--backend", self._found.backend]
                answers[arm].append(self._ask_once(name, arguments, self._trees[arm]))
                self._drop_caches(name)
        return cold_result(*answers)

    def _steady(self, configuration: str) -> Steady:
        slots = [(arm, number) for number in range(self._options.processes) for arm in (0, 1)]
        names = [f"{configuration}-{arm}-{number}" for arm, number in slots]
        for name in names:
            self._copy_caches("seed", name)
        folders = [self._folder / name for name in names]
        trees = [self._trees[arm] for arm, _ in slots]
        about = [*self._about("steady"), "--configuration", configuration]
        arguments = [[*about, "--root", str(tree)] for tree in trees]
        with partners(arguments, worktrees=trees, folders=folders, policy=self._policy) as children:
            for (arm, number), name, child in zip(slots, names, children, strict=True):
                self._progress(f"{configuration}: warming up process {number + 1} of {'base' if arm == 0 else 'head'}")
                if number:
                    self._copy_caches(f"{configuration}-{arm}-0", name)
                if not child.ask("warm")["settled"]:
                    self._remark(f"{configuration}: {'base' if arm == 0 else 'head'} still compiles after its warm-up")
            self._progress(f"{configuration}: {self._options.rounds} rounds")
            blocks = self._blocks(children)
            if self._found.device == "cuda":  # clocks of an idle GPU would say nothing
                self._found.gpu = replace(self._found.gpu, clocks=gpu_as_found(self._gpu_uuid).clocks)
            extra = [self._extra(child, configuration) for child in children[:2]]
        for name in names:
            self._drop_caches(name)
        before, after = ([blocks[i] for i in range(len(slots)) if slots[i][0] == arm] for arm in (0, 1))
        return steady_result(configuration, before, after, extra[0], extra[1])

    def _blocks(self, children: Sequence[Partner]) -> list[list[Answer]]:
        """Blocks of each child by rounds. Every other round runs backwards, so that a drift hits all alike."""
        trial = [median(child.ask("block", passes=_TRIAL_PASSES)["seconds"]) for child in children]
        one_pass = max(trial) * len(self._calls)
        passes = min(max(round(self._options.block_s / max(one_pass, 1e-6)), _FEWEST_PASSES), _MOST_PASSES)
        blocks: list[list[Answer]] = [[] for _ in children]
        for number in range(self._options.rounds):
            order = range(len(children))
            for i in order if number % 2 == 0 else reversed(order):
                blocks[i].append(children[i].ask("block", passes=passes))
        return blocks

    def _extra(self, child: Partner, configuration: str) -> tuple[int | None, ProfileCounts | None]:
        """Memory, and counts of the profiler, after all that is timed."""
        peak = child.ask("peak_bytes", passes=_TRIAL_PASSES)
        if not self._options.profile:
            return peak, None
        try:
            return peak, from_json(ProfileCounts, child.ask("profile"))
        except MeasureError as error:
            self._remark(f"{configuration}: nothing counted, the profiler failed: {error}")
            return peak, None

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

    def _ask_once(self, name: str, arguments: Sequence[str], tree: Path) -> Any:
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        arguments = [*arguments, "--root", str(tree)]
        return ask_once(_MODULE, arguments, worktree=tree, folder=folder, policy=self._policy)

    def _copy_caches(self, source: str, target: str) -> None:
        self._drop_caches(target)
        (self._folder / target).mkdir(parents=True, exist_ok=True)
        for cache in _CACHES:
            if (self._folder / source / cache).is_dir():
                shutil.copytree(self._folder / source / cache, self._folder / target / cache)

    def _drop_caches(self, name: str) -> None:
        for cache in _CACHES:
            shutil.rmtree(self._folder / name / cache, ignore_errors=True)


def cold_result(before: Sequence[Answer], after: Sequence[Answer]) -> Cold:
    """What cold children of both arms answered, in pairs, put together."""
    count = len(before[0]["calls"])
    peaks = [[answer["peak_bytes"] for answer in arm] for arm in (before, after)]
    known = not any(peak is None for arm in peaks for peak in arm)
    return Cold(
        repetitions=len(before),
        calls=tuple(_cold_call(before, after, number + 1, [number]) for number in range(count)),
        total=_cold_call(before, after, 0, range(count)),
        compilations_before=before[0]["compilations"],
        compilations_after=after[0]["compilations"],
        peak_bytes=compared(*peaks) if known else None,
    )


def _cold_call(before: Sequence[Answer], after: Sequence[Answer], number: int, indices: Sequence[int]) -> ColdCall:
    def quantity(of: Callable[[Answer], float]) -> Compared:
        return compared(*([sum(of(each["calls"][i]) for i in indices) for each in arm] for arm in (before, after)))

    return ColdCall(
        number=number,
        wall_s=quantity(lambda call: call["wall"]),
        cpu_s=quantity(lambda call: call["cpu"]),
        run_wall_s=quantity(lambda call: max(0.0, call["wall"] - call["compile"][0])),
        run_cpu_s=quantity(lambda call: max(0.0, call["cpu"] - call["compile"][1])),
    )


def steady_result(
    configuration: str,
    before: Sequence[Sequence[Answer]],
    after: Sequence[Sequence[Answer]],
    extra_before: tuple[int | None, ProfileCounts | None],
    extra_after: tuple[int | None, ProfileCounts | None],
) -> Steady:
    """Blocks of each process of both arms, put together.

    A round's value is the mean over the arm's processes; how far those are apart is noise that no number of rounds
    makes smaller.
    """
    medians = [[[median(block["seconds"]) for block in process] for process in arm] for arm in (before, after)]
    noise = max([apart(one, two) for arm in medians for one in arm for two in arm], default=0.0)
    rounds = [[sum(values) / len(values) for values in zip(*arm, strict=True)] for arm in medians]
    singles = [[s for process in arm for block in process for s in block["seconds"]] for arm in (before, after)]
    rates = [[block["calls_per_s"] for process in arm for block in process] for arm in (before, after)]
    return Steady(
        configuration=configuration,
        latency_s=Compared(spread(singles[0]), spread(singles[1]), difference(*rounds, noise=noise)),
        calls_per_s_before=median(rates[0]),
        calls_per_s_after=median(rates[1]),
        peak_bytes_before=extra_before[0],
        peak_bytes_after=extra_after[0],
        blocks_before_s=tuple(rounds[0]),
        blocks_after_s=tuple(rounds[1]),
        profile_before=extra_before[1],
        profile_after=extra_after[1],
    )


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
