"""*behaves*: module source before and after, run side by side in eager mode, must be the same to everybody outside."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence

from tests.tools.observe import Event, Observation, Scenario, arguments_at, observe
from tests.tools.snapshot import differences as snapshot_differences
from tests.tools.subject import VARIANTS, Source, forget, register

_MODES = ((False, "off"), (False, "parameters"), (True, "leaves"), (True, "inner"))
_MAX_SHOWN = 8

EVERYTHING = bool(os.environ.get("GRAPHMEND_TEST_ALL"))
"""True with `make test-all`: every scenario of every example."""

EVERY_SCENARIO: tuple[Scenario, ...] = (
    *(Scenario(training, gradients, variant) for (training, gradients), variant in itertools.product(_MODES, VARIANTS)),
    Scenario(False, "inference"),
    Scenario(False, "off", shared=True),
    Scenario(True, "inner", shared=True),
)
"""Train and eval mode, with and without gradients, and all variants of the inputs."""

_ONE_MODE_A_VARIANT: tuple[Scenario, ...] = (
    *EVERY_SCENARIO[: len(_MODES) * len(VARIANTS) : len(VARIANTS)],
    *(
        Scenario(training, gradients, variant)
        for variant, (training, gradients) in zip([*VARIANTS][1:], itertools.cycle(_MODES), strict=False)
    ),
    *EVERY_SCENARIO[-3:],
)

USUAL_SCENARIOS = EVERY_SCENARIO if EVERYTHING else _ONE_MODE_A_VARIANT
"""Every mode, and every variant of the inputs in one of them. With `make test-all` it is every scenario."""

FEW_SCENARIOS: tuple[Scenario, ...] = (
    Scenario(False, "off"),
    Scenario(True, "leaves"),
    Scenario(True, "inner", "one nan"),
    Scenario(False, "parameters", "empty"),
    Scenario(False, "off", "float16"),
    Scenario(True, "inner", "negative"),
    Scenario(False, "inner", "one inf"),
    Scenario(False, "off", "int64"),
)
"""A cheap selection for many generated modules."""


def behaves(
    before: str,
    after: str,
    inputs: Sequence[str],
    *,
    name: str = "Model",
    scenarios: Sequence[Scenario] = USUAL_SCENARIOS,
) -> None:
    """Assert that in eager mode nobody can tell `after` from `before`.

    `inputs` are Python expressions, one a call, all on one instance: a tuple of arguments, a dict of keyword arguments,
    or one argument. `name` is a class without arguments, a factory whose name begins with `make`, or a function.
    """
    __tracebackhide__ = True
    found = list(itertools.islice(differences(before, after, inputs, name=name, scenarios=scenarios), _MAX_SHOWN))
    if found:
        raise AssertionError("\n".join(["eager mode is not what it was:", *found, "", "after:", after]))


def differences(
    before: str,
    after: str,
    inputs: Sequence[str],
    *,
    name: str = "Model",
    scenarios: Sequence[Scenario] = USUAL_SCENARIOS,
) -> Iterator[str]:
    """Everything in which `after` differs from `before`, one line each. Arguments as for `behaves`."""
    old_source, new_source = register(before), register(after)
    try:
        for scenario in scenarios:
            old = observe(old_source, name, inputs, scenario)
            new = observe(new_source, name, inputs, scenario)
            for number, pair in enumerate(zip(old, new, strict=True), 1):
                where = f"{scenario}, call {number}"
                yield from compared(*pair, where)
            yield from _places(old, new, (old_source, new_source), str(scenario))
    finally:
        forget(old_source)
        forget(new_source)


def compared(old: Observation, new: Observation, where: str) -> Iterator[str]:
    yield from snapshot_differences(old.outcome, new.outcome, f"{where}: outcome")
    yield from _events(old.events, new.events, f"{where}: messages")
    yield from snapshot_differences(old.inputs, new.inputs, f"{where}: inputs after the call")
    yield from snapshot_differences(old.state, new.state, f"{where}: state")
    if old.random != new.random:
        yield f"{where}: random number state differs"
    yield from snapshot_differences(old.gradients, new.gradients, f"{where}: gradients")


def _events(old: Sequence[Event], new: Sequence[Event], where: str) -> Iterator[str]:
    before, after = [event.what for event in old], [event.what for event in new]
    if before != after:
        lost = [what for what in before if what not in after]
        added = [what for what in after if what not in before]
        yield f"{where}: lost {lost}, added {added}" if lost or added else f"{where}: {before} became {after}"


def _places(
    old: Sequence[Observation], new: Sequence[Observation], sources: tuple[Source, Source], where: str
) -> Iterator[str]:
    """Messages come from the same statements: no two places become one, none two, and arguments stand there."""
    there: dict[int, int] = {}
    back: dict[int, int] = {}
    for before, after in zip(old, new, strict=True):
        for first, second in zip(before.events, after.events, strict=False):
            if first.what != second.what or first.line is None or second.line is None:
                continue
            same = there.setdefault(first.line, second.line) == second.line
            if not same or back.setdefault(second.line, first.line) != first.line:
                yield f"{where}: {first.what}: places in the source were merged or divided"
            elif not arguments_at(sources[0], first.line) & arguments_at(sources[1], second.line):
                yield f"{where}: {first.what}: reported at line {second.line}, which is another statement"
