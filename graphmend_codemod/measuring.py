"""Models measured before and after, by the evaluation stage if it is installed; what the codemod keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graphmend_evaluation.results import ModelMeasurement, ModelRow


class MeasuringError(Exception):
    """Models cannot be measured at all. The text is one line: what, why, way out."""


@dataclass(frozen=True)
class Arm:
    """A model in one version of the code. The numbers are None, and `message` says why, when it was not measured.

    `sites` are the places that break, `path:line reason`. `whole` says that every call runs as one graph.
    """

    breaks: int | None
    graphs: int | None
    whole: bool
    sites: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class ModelResult:
    """A model at the base and at the branch; `problems` is what a reviewer must know, one line each.

    `versions` are names and versions of what it was measured with: python, torch, its own packages.
    """

    model: str
    before: Arm
    after: Arm
    problems: tuple[str, ...]
    versions: tuple[tuple[str, str], ...] = ()


class Measure(Protocol):
    """Measures each of `models` with the code in `base` and in `head`, which is `base` itself when nothing changed."""

    def __call__(
        self,
        base: Path,
        head: Path,
        models: Sequence[str],
        *,
        folder: Path,
        timeout: float | None,
        progress: Callable[[str], None],
    ) -> tuple[ModelResult, ...]: ...


def require_evaluation() -> None:
    """Raise `MeasuringError` when the evaluation stage or torch is missing. Imports neither torch nor user code."""
    try:
        from graphmend_evaluation.isolation import torch_is_installed

        usable = torch_is_installed()
    except ImportError:
        usable = False
    if not usable:
        raise MeasuringError(
            "models cannot be measured without torch beside graphmend; "
            "install `graphmend[eval]` into the environment of your models, or pass --no-measure"
        )


def measure(
    base: Path,
    head: Path,
    models: Sequence[str],
    *,
    folder: Path,
    timeout: float | None,
    progress: Callable[[str], None],
) -> tuple[ModelResult, ...]:
    """`Measure` with the evaluation stage: in child processes, so that a model that fails costs only its row."""
    from graphmend_evaluation.isolation import DEFAULT_TIMEOUT, Policy, evaluate_model, measure_model

    policy = Policy(timeout=DEFAULT_TIMEOUT if timeout is None else timeout)
    results = []
    for number, model in enumerate(models):
        progress(f"[{number + 1}/{len(models)}] measuring {model}")
        own = folder / f"{number:03d}"
        if base == head:
            results.append(_unchanged(measure_model(base, model, folder=own, policy=policy)))
        else:
            results.append(_result(evaluate_model(base, head, model, folder=own, policy=policy)))
    return tuple(results)


def _result(row: ModelRow) -> ModelResult:
    versions = row.after.versions or row.before.versions
    return ModelResult(row.model, _arm(row.before), _arm(row.after), row.problems, versions)


def _unchanged(measured: ModelMeasurement) -> ModelResult:
    arm = _arm(measured)
    return ModelResult(measured.model, arm, arm, (arm.message,) if arm.message else (), measured.versions)


def _arm(measured: ModelMeasurement) -> Arm:
    counts = measured.counts
    if not measured.ok or counts is None:
        return Arm(None, None, False, (), measured.message or measured.status.value)
    sites = tuple(f"{site.path}:{site.line} {site.kind or site.reason}" for site in counts.sites)
    return Arm(counts.break_events, counts.graphs, counts.whole, sites, "")
