"""Models measured before and after, by the evaluation stage if it is installed; what the codemod keeps of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graphmend_codemod.findings import Finding

if TYPE_CHECKING:
    from graphmend_evaluation.evaluation import Evaluation


MODEL_SCHEMES = ("huggingface:", "huggingface-id:", "recorded:")
"""How names of models begin that are not `package.module:factory`; see `graphmend_evaluation.sources`."""


class MeasuringError(Exception):
    """Models cannot be measured at all. The text is one line: what, why, way out."""


@dataclass(frozen=True)
class Wanted:
    """Which models to evaluate, and how.

    `named` are `package.module:factory`, `configured` says that they come from the settings. `from_tests` are
    arguments for pytest; None runs no tests. `timeout` is in seconds a model, `memory` in bytes, `speed_budget` about
    how many seconds a model may be timed.
    """

    named: tuple[str, ...] = ()
    configured: bool = False
    from_tests: str | None = None
    huggingface: bool = False
    hub: tuple[str, ...] = ()
    trust_remote_code: bool = False
    timeout: float | None = None
    memory: int | None = None
    jobs: int = 1
    speed: bool = False
    speed_budget: float | None = None
    flags: bool = False
    xla_python: Path | None = None
    resume: bool = True

    @property
    def anything(self) -> bool:
        """True when there may be a model."""
        return bool(self.named or self.hub or self.huggingface or self.from_tests is not None)


@dataclass(frozen=True)
class Trees:
    """Folders with the project at the base and at the head, which is `base` itself when nothing changed.

    `trial` holds the base, too, and may be written to. `memory` is a folder that outlives the run, `folder` one that
    does not. `repository`, `base_name`, `base_oid` and `head_name` say what they are.
    """

    base: Path
    head: Path
    trial: Path
    folder: Path
    memory: Path
    repository: str
    base_name: str
    base_oid: str
    head_name: str
    head_oid: str = ""


@dataclass(frozen=True)
class Sites:
    """Findings of the base: those that were fixed and those that are left, each with the reason."""

    fixed: tuple[Finding, ...]
    left: tuple[tuple[Finding, str], ...]


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


@dataclass(frozen=True)
class Culprit:
    """A change that did not earn its place: lines `first` to `last` of the base in `path`, and why."""

    path: str
    first: int
    last: int
    reason: str


@dataclass(frozen=True)
class Measured:
    """What came of the models. `evaluation` holds all of it, for the report of its own; `times` tell about speed."""

    models: tuple[ModelResult, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    remarks: tuple[str, ...] = ()
    evaluation: Evaluation | None = None
    times: tuple[str, ...] = ()


class Judge(Protocol):
    """Measures the models."""

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        """The models as the trees are now, and the changes that must go. May be asked again."""

    def finish(self, measured: Measured) -> Measured:
        """The last verdict, with all that takes long and decides nothing: speed, other views, advice."""


class Measure(Protocol):
    """Prepares to measure what is wanted."""

    def __call__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> Judge: ...


def require_evaluation() -> None:
    """Raise `MeasuringError` when the evaluation stage or torch is missing. Imports neither torch nor user code."""
    if not can_evaluate():
        raise MeasuringError(
            "models cannot be measured without torch beside graphmend; "
            "install `graphmend[eval]` into the environment of your models, or pass --no-evaluate"
        )


def can_evaluate() -> bool:
    """Whether the evaluation stage and torch are installed. Imports neither torch nor user code."""
    try:
        from graphmend_evaluation.isolation import torch_is_installed
    except ImportError:
        return False
    return torch_is_installed()


def measure(trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> Judge:
    """`Measure` with the evaluation stage: in child processes, so that a model that fails costs only its row."""
    from graphmend_codemod.evaluating import Evaluating

    return Evaluating(trees, wanted, progress)
