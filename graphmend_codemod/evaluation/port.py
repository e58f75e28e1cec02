"""Interface to the evaluation stage: models measured before and after, if it is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graphmend_codemod.core import extras
from graphmend_codemod.core.findings import Finding
from graphmend_codemod.evaluation.rounds import LeftBreak, Round

if TYPE_CHECKING:
    from graphmend_codemod.trace.document import Trace
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
    how many seconds a model may be timed. `sandbox` runs them in bubblewrap. `revert_slower` asks which fixes make a
    timed model slower. `rounds` is how often models that still break may be recorded and fixed; then `from_tests` and
    `huggingface` look for models of every file with a finding, changed or not.
    """

    named: tuple[str, ...] = ()
    configured: bool = False
    from_tests: str | None = None
    huggingface: bool = False
    hub: tuple[str, ...] = ()
    trust_remote_code: bool = False
    timeout: float | None = None
    memory: int | None = None
    sandbox: bool = False
    jobs: int = 1
    speed: bool = False
    speed_budget: float | None = None
    flags: bool = False
    revert_slower: bool = False
    xla_python: Path | None = None
    resume: bool = True
    rounds: int = 0

    @property
    def anything(self) -> bool:
        """True when there may be a model."""
        return bool(self.named or self.hub or self.huggingface or self.from_tests is not None)


@dataclass(frozen=True)
class Trees:
    """Folders with the project at the base and at the head, which is `base` itself when nothing changed.

    `trial` holds the base, too, and may be written to. `memory` is a folder that outlives the run, `folder` one that
    does not. `repository`, `base_name`, `base_oid` and `head_name` say what they are. `helpers` is the
    setting of that name.
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
    helpers: str = ""


@dataclass(frozen=True)
class Sites:
    """Findings of the base: those that were fixed and those that are left, each with the reason."""

    fixed: tuple[Finding, ...]
    left: tuple[tuple[Finding, str], ...]


@dataclass(frozen=True)
class MeasuredVersion:
    """A model in one version of the code. The numbers are None, and `message` says why, when it was not measured.

    `sites` are the places that break, `path:line reason`. `whole` says that every call runs as one graph, `opaque` how
    many operators in the graphs are not torch's own.
    """

    breaks: int | None
    graphs: int | None
    whole: bool
    sites: tuple[str, ...]
    message: str
    opaque: int = 0

    @property
    def one_graph(self) -> str:
        """`yes`, `no`, or `yes, with 2 opaque operators`."""
        if not self.whole:
            return "no"
        noun = "operator" if self.opaque == 1 else "operators"
        return f"yes, with {self.opaque} opaque {noun}" if self.opaque else "yes"


@dataclass(frozen=True)
class ModelResult:
    """A model at the base and at the branch; `problems` is what a reviewer must know, one line each.

    `versions` are names and versions of what it was measured with: python, torch, its own packages. `cold` and `steady`
    tell its cold start and a call in steady state before and after, empty where they were not measured.
    """

    model: str
    before: MeasuredVersion
    after: MeasuredVersion
    problems: tuple[str, ...]
    versions: tuple[tuple[str, str], ...] = ()
    cold: str = ""
    steady: str = ""


@dataclass(frozen=True)
class Culprit:
    """A change that did not earn its place: lines `first` to `last` of the base in `path`, and why.

    `harmless` is true where the only reason is that the break which it should remove is still there.
    """

    path: str
    first: int
    last: int
    reason: str
    harmless: bool = False


@dataclass(frozen=True)
class Measured:
    """What came of the models. `evaluation` holds all of it, for the report of its own; `times` tell about speed.

    `slower` are changes that make a timed model slower, if it was asked which.
    """

    models: tuple[ModelResult, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    remarks: tuple[str, ...] = ()
    evaluation: Evaluation | None = None
    times: tuple[str, ...] = ()
    slower: tuple[Culprit, ...] = ()

    def noting(self, remark: str | None) -> Measured:
        """The same with another remark, if there is one; it is in the report of the evaluation, too."""
        if remark is None:
            return self
        remarks = (*self.remarks, remark)
        evaluation = None if self.evaluation is None else replace(self.evaluation, remarks=remarks)
        return replace(self, remarks=remarks, evaluation=evaluation)

    def telling(self, rounds: tuple[Round, ...], left: tuple[LeftBreak, ...]) -> Measured:
        """The same with the rounds of recorded runs in the report of the evaluation."""
        if self.evaluation is None or not (rounds or left):
            return self
        return replace(self, evaluation=replace(self.evaluation, rounds=rounds, left_breaks=left))


@dataclass(frozen=True)
class RecordedModel:
    """A model and the trace of its recorded calls, which is None where `message` says why there is none."""

    model: str
    trace: Trace | None
    message: str = ""


class ModelMeasurer(Protocol):
    """Measures the models."""

    def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
        """The models as the trees are now, and the changes that must go. May be asked again."""

    def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        """Record models of the last verdict, by the names used there, with the current code of the head."""

    def finish(self, measured: Measured) -> Measured:
        """A verdict with all that takes long: speed, other views, advice. May be asked again, after another verdict."""


class Measure(Protocol):
    """Prepares to measure what is wanted."""

    def __call__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> ModelMeasurer: ...


def require_evaluation(wanted: Wanted) -> None:
    """Raise `MeasuringError` when models cannot be run as they are to be. Imports neither torch nor user code."""
    absent = extras.missing("eval")
    if absent or not can_evaluate():
        raise MeasuringError(
            f"models cannot be measured without {', '.join(absent) or 'torch'} beside graphmend; "
            f"run `{extras.install_command('eval')}` in the environment of your models, or pass --no-evaluate"
        )
    if wanted.sandbox:
        from graphmend_evaluation.containment import SandboxError, require_sandbox

        try:
            require_sandbox()
        except SandboxError as error:
            raise MeasuringError(str(error)) from error


def can_evaluate() -> bool:
    """Whether the evaluation stage and torch are installed. Imports neither torch nor user code."""
    try:
        from graphmend_evaluation.isolation import torch_is_installed
    except ImportError:
        return False
    return torch_is_installed()


def measure(trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> ModelMeasurer:
    """`Measure` with the evaluation stage: in child processes, so that a model that fails costs only its row."""
    from graphmend_codemod.evaluation.adapter import Evaluating

    return Evaluating(trees, wanted, progress)
