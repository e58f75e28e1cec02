"""Read the report of `torch_xla.debug.metrics`, and say what it means. Pure functions; torch_xla is not needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graphmend_evaluation.xla.results import Split, XlaRun

# Reads of one value. They are counted like operations without a lowering, but a lowering could not help.
_HOST_READS = frozenset({"aten::_local_scalar_dense", "aten::item", "aten::equal", "aten::is_nonzero"})
_FALLBACK = "aten::"
_ENTRY = re.compile(r"^(?P<kind>Metric|Counter): (?P<name>\S+)\s*$")
_FIELD = re.compile(r"^\s+(?P<name>TotalSamples|Value): (?P<number>\d+)\s*$")


@dataclass(frozen=True)
class Report:
    """`samples` of each metric (`CompileTime`, `ExecuteTime`, ...) and the value of each counter."""

    samples: Mapping[str, int]
    counters: Mapping[str, int]

    @property
    def compilations(self) -> int:
        """HLO graphs that were compiled."""
        return self.samples.get("CompileTime", 0)

    @property
    def executions(self) -> int:
        """Times that a compiled HLO graph was run."""
        return self.samples.get("ExecuteTime", 0)

    @property
    def transfers(self) -> int:
        """Copies from the device to the host."""
        return self.samples.get("TransferFromDeviceTime", 0)

    @property
    def host_reads(self) -> int:
        """Reads of one value, such as `.item()` and `if tensor`."""
        return sum(value for name, value in self.counters.items() if name in _HOST_READS)

    @property
    def fallbacks(self) -> dict[str, int]:
        """Operations without a lowering, which ran on the CPU, and how often."""
        return {
            name: value
            for name, value in sorted(self.counters.items())
            if name.startswith(_FALLBACK) and name not in _HOST_READS
        }


def read_report(text: str) -> Report:
    """The report that `metrics_report()` prints. What is not known in it is passed over."""
    samples: dict[str, int] = {}
    counters: dict[str, int] = {}
    current: tuple[str, str] | None = None
    for line in text.splitlines():
        if entry := _ENTRY.match(line):
            current = (entry["kind"], entry["name"])
        elif current is not None and (field := _FIELD.match(line)):
            if current[0] == "Metric" and field["name"] == "TotalSamples":
                samples[current[1]] = int(field["number"])
            elif current[0] == "Counter" and field["name"] == "Value":
                counters[current[1]] = int(field["number"])
    return Report(samples, counters)


def classify(openxla: XlaRun, lazy: XlaRun) -> tuple[tuple[Split, ...], str]:
    """Why a compiled call does not run as one graph, and the same in words.

    Lazy tracing splits only where it must: at a read by the host and at an operation without a lowering. A split that
    `torch.compile` has and lazy tracing has not is Dynamo's own. Lazy tracing takes the path of eager mode: where that
    still splits, and the compiled call does not, the words say so.
    """
    found = _causes(openxla)
    lazily = _causes(lazy)
    if openxla.break_events or openxla.executions > lazy.executions:
        if not found and not lazily:
            graphs = f"{openxla.fx_graphs} FX graphs, but lazy tracing runs one HLO graph a call"
            found[Split.DYNAMO] = f"{Split.DYNAMO.value}: {graphs}"
        elif openxla.executions > lazy.executions:
            both = f"{openxla.executions:g} executions a call compiled, {lazy.executions:g} with lazy tracing"
            found[Split.DYNAMO] = f"{Split.DYNAMO.value}, beside that: {both}"
    shapes = openxla.fx_graphs  # without a break, there is another graph for other sizes alone
    words = "; ".join(found.values()) or ("one graph" if shapes <= 1 else f"one graph for each of {shapes} shapes")
    still = [text for split, text in lazily.items() if split not in found]
    if still:
        words += f". Without torch.compile lazy tracing still has {'; '.join(still)}"
    return tuple(found), words


def _causes(run: XlaRun) -> dict[Split, str]:
    """What torch_xla itself counts as a reason to stop."""
    found = {}
    if run.host_reads:
        found[Split.HOST_READ] = f"{Split.HOST_READ.value}: {_times(run.host_reads)} a call the host waits for a value"
    elif run.transfers and not run.fallbacks:
        found[Split.HOST_READ] = (
            f"{Split.HOST_READ.value}: {_times(run.transfers)} a call values are copied to the host"
        )
    if run.fallbacks:
        named = ", ".join(f"{name} {_times(times)}" for name, times in run.fallbacks)
        found[Split.LOWERING] = f"{Split.LOWERING.value}: no lowering for {named}"
    return found


def _times(number: float) -> str:
    return f"{number:g} time{'' if number == 1 else 's'}"
