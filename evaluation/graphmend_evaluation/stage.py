"""The evaluation stage: every model at the base and at the head, and what that says about the changes between them.

Models run in child processes (`isolation`); this module imports neither torch nor any code that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from graphmend_evaluation.changes import FileChanges, Mark
from graphmend_evaluation.culprits import LimitReachedError, find_culprits
from graphmend_evaluation.evaluation import Cause, Change, ModelEvaluation, Reverted, Source
from graphmend_evaluation.isolation import DEFAULT_POLICY, Policy, in_parallel, measure_model
from graphmend_evaluation.judging import Judge
from graphmend_evaluation.remembered_rows import RowMemory, digest_of_files
from graphmend_evaluation.results import ModelMeasurement, ModelRow

Progress = Callable[[str], None]

_MOST_TIMINGS = 8  # each may take minutes


@dataclass(frozen=True)
class Model:
    """A model to evaluate, and where it came from."""

    name: str
    source: Source


@dataclass(frozen=True)
class WorkTrees:
    """Three work trees of one project. `trial` is at the base, and is written to while the stage looks for causes.

    `helpers` is the project's module of helpers, which any change may import from; empty where it has none.
    """

    base: Path
    head: Path
    trial: Path
    helpers: str = ""


@dataclass(frozen=True)
class Judgement:
    """What the stage found. `culprits` are changes that did not earn their place; `changes` are all of the branch."""

    models: tuple[ModelEvaluation, ...]
    changes: tuple[Change, ...]
    culprits: tuple[Reverted, ...]
    remarks: tuple[str, ...]


class Stage:
    """One evaluation. `judge` may be called again when the head has changed: only what that concerns is measured.

    `folder` receives what the child processes write. `memory` keeps rows for a later run. `only_changed` promises that
    base and head differ in the files that are named as changed, and in nothing else.
    """

    def __init__(
        self,
        arms: WorkTrees,
        folder: Path,
        *,
        policy: Policy = DEFAULT_POLICY,
        jobs: int = 1,
        memory: RowMemory | None = None,
        only_changed: bool = False,
        progress: Progress = lambda line: None,
    ) -> None:
        self._arms = arms
        self._folder = folder
        self._policy = policy
        self._jobs = jobs
        self._memory = memory
        self._only_changed = only_changed
        self._progress = progress
        self._numbers: dict[str, int] = {}
        self._before: dict[str, ModelMeasurement] = {}
        self._rows: dict[str, tuple[str, ModelRow, bool]] = {}
        self._files: Mapping[str, FileChanges] = {}

    def judge(self, models: Sequence[Model], changed: Iterable[str], marks: Iterable[Mark]) -> Judgement:
        """Measure `models`, judge their break sites, and find the changes that do not earn their place.

        `changed` are the files in which base and head differ; paths are relative to the work trees.
        """
        marks = list(marks)
        self._files = files = {path: self._file(path, marks) for path in sorted(set(changed))}
        judge = Judge(files, marks)
        rows = self._measured([model.name for model in models], files)
        evaluated = [
            judge.model(row, model.source, remembered=remembered)
            for model, (_, row, remembered) in zip(models, rows, strict=True)
        ]
        culprits: dict[str, Reverted] = {}
        remarks: list[str] = []
        for each in evaluated:
            for found in self._blame(each.row, files, frozenset(culprits), remarks):
                culprits.setdefault(found.change.id, found)
        for found in judge.useless(evaluated):
            culprits.setdefault(found.change.id, found)
        return Judgement(tuple(evaluated), judge.changes, tuple(culprits.values()), tuple(remarks))

    # -- measuring -----------------------------------------------------------------------------------------------

    def _file(self, path: str, marks: Sequence[Mark]) -> FileChanges:
        base, head = (_bytes(root / path) for root in (self._arms.base, self._arms.head))
        if path == self._arms.helpers:  # nothing to judge, and there as a whole whatever is tried
            return FileChanges(path, head, head, ())
        return FileChanges(path, base, head, [mark for mark in marks if mark.path == path])

    def _measured(self, models: Sequence[str], files: Mapping[str, FileChanges]) -> list[tuple[str, ModelRow, bool]]:
        for model in models:
            self._numbers.setdefault(model, len(self._numbers))
        todo = [model for model in models if not self._is_known(model, files)]
        done = 0

        def evaluate(number: int, policy: Policy) -> None:
            nonlocal done
            self._evaluate(todo[number], files, policy)
            done += 1
            self._progress(f"[{done}/{len(todo)}] measured {todo[number]}")

        self._progress(f"measuring {len(todo)} model{'' if len(todo) == 1 else 's'}")
        in_parallel(evaluate, len(todo), jobs=self._jobs, policy=self._policy)
        return [self._rows[model] for model in models]

    def _is_known(self, model: str, files: Mapping[str, FileChanges]) -> bool:
        known = self._rows.get(model)
        return known is not None and known[0] == self._relevant(known[1].before, files)

    def _relevant(self, before: ModelMeasurement, files: Mapping[str, FileChanges]) -> str:
        """A digest of the changed files that the model imports, of all of them where nobody knows."""
        wanted = [path for path in files if path in before.files] if before.ok else list(files)
        return digest_of_files({path: _bytes(self._arms.head / path) for path in wanted})

    def _evaluate(self, model: str, files: Mapping[str, FileChanges], policy: Policy) -> None:
        content = {path: _bytes(self._arms.head / path) for path in files}
        row = self._memory.read(model, content) if self._memory is not None else None
        remembered = row is not None
        if row is None:
            before = self._measure_before(model, policy)
            same = self._arms.head == self._arms.base or (self._only_changed and not files)
            row = ModelRow(model, before, before if same else self._measure_after(self._arms.head, model, policy))
            if self._memory is not None and row.before.ok and row.after.ok:
                self._memory.write(model, content, row)
        self._rows[model] = (self._relevant(row.before, files), row, remembered)

    def _measure_before(self, model: str, policy: Policy) -> ModelMeasurement:
        known = self._before.get(model)
        if known is None:
            known = measure_model(self._arms.base, model, folder=self._own_folder(model) / "before", policy=policy)
            if known.ok and self._arms.helpers:
                known = replace(known, files=tuple(sorted({*known.files, self._arms.helpers})))
            self._before[model] = known
        return known

    def _measure_after(self, tree: Path, model: str, policy: Policy) -> ModelMeasurement:
        own = self._own_folder(model)
        against = own / "before" if self._before[model].ok else None
        return measure_model(tree, model, folder=own / "after", against=against, policy=policy)

    def _own_folder(self, model: str) -> Path:
        return self._folder / f"{self._numbers[model]:04d}"

    # -- blaming -------------------------------------------------------------------------------------------------

    def _blame(
        self, row: ModelRow, files: Mapping[str, FileChanges], known: Set[str], remarks: list[str]
    ) -> list[Reverted]:
        """The changes without which this model has no problem, beside those that are `known` to go."""
        if not row.before.ok or not row.problems:
            return []
        imported = [file for path, file in sorted(files.items()) if path in row.before.files]
        changes = {each.id: each for file in imported for each in file.changes if not each.is_support}
        trial = _Trial(self, row, imported)
        self._progress(f"looking for the change that is to blame for {row.model}")
        candidates = [name for name in changes if name not in known]
        try:
            if trial.is_bad(frozenset()):
                remarks.append(f"{row.model}: its results differ from run to run, so no change is to blame")
                return []
            if not trial.is_bad(frozenset(candidates)):
                return []
            culprits = find_culprits(candidates, trial.is_bad)
        except LimitReachedError:
            remarks.append(f"{row.model}: its problem could not be traced to a change within the limit of measurements")
            return []
        finally:
            trial.restore()
        eager = row.after.against_base is not None and not row.after.against_base.identical
        cause = Cause.EAGER_CHANGED if eager else Cause.COMPILE_FAILS
        return [Reverted(changes[name], row.model, cause, row.problems[0]) for name in culprits]

    def changes_of(self, model: str) -> tuple[Change, ...]:
        """The changes in files that a judged model imports."""
        return tuple(change for file in self._imported(model) for change in file.changes)

    def digest_of(self, model: str) -> str:
        """Another one when other code of the head is what the model imports."""
        return self._rows[model][0]

    def slower_changes(self, model: str, detail: str, is_slow: Callable[[Path], bool]) -> tuple[Reverted, ...]:
        """The changes without which a model that is slower at the head is not: those of one rule after the other.

        `is_slow` times the model in a work tree. Where that does not tell the rules apart all of them go.
        """
        imported = self._imported(model)
        groups: dict[str, list[Change]] = {}
        for file in imported:
            for change in file.changes:
                if not change.is_support:
                    groups.setdefault(", ".join(change.rules), []).append(change)
        trial = _Trial(self, self._rows[model][1], imported)

        def bad(rules: Set[str]) -> bool:
            return bool(rules) and trial.run({each.id for rule in rules for each in groups[rule]}, is_slow)

        self._progress(f"looking for the rule that makes {model} slower")
        try:
            culprits: Sequence[str] = find_culprits(list(groups), bad, limit=_MOST_TIMINGS)
        except LimitReachedError:
            culprits = list(groups)
        finally:
            trial.restore()
        return tuple(Reverted(each, model, Cause.SLOWER, detail) for rule in culprits for each in groups[rule])

    def _imported(self, model: str) -> list[FileChanges]:
        files = self._rows[model][1].before.files
        return [file for path, file in sorted(self._files.items()) if path in files]

    def measure_trial(self, model: str) -> ModelRow:
        """A model at the base and in the trial work tree as it is now."""
        before = self._measure_before(model, self._policy)
        return ModelRow(model, before, self._measure_after(self._arms.trial, model, self._policy))

    @property
    def trial(self) -> Path:
        """The work tree that is written to."""
        return self._arms.trial


class _Trial:
    """The trial work tree, with some of the changes in it."""

    def __init__(self, stage: Stage, row: ModelRow, files: Sequence[FileChanges]) -> None:
        self._stage = stage
        self._model = row.model
        self._files = files
        self._known: dict[frozenset[str], bool] = {}

    def is_bad(self, wanted: Set[str]) -> bool:
        """Whether the model has a problem with these changes and no others."""
        key = frozenset(wanted)
        if key not in self._known:
            self._write(key)
            self._known[key] = bool(self._stage.measure_trial(self._model).problems)
        return self._known[key]

    def run(self, wanted: Set[str], question: Callable[[Path], bool]) -> bool:
        """What `question` says of the work tree with these changes and no others."""
        self._write(wanted)
        return question(self._stage.trial)

    def restore(self) -> None:
        """Leave the trial as it was found."""
        self._write(frozenset())

    def _write(self, wanted: Set[str]) -> None:
        for file in self._files:
            path = self._stage.trial / file.path
            path.write_bytes(file.text(wanted))
            # Two texts of one size within a second look the same to the import system.
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink(missing_ok=True)


def without_files(evaluated: ModelEvaluation) -> ModelEvaluation:
    """The same without the lists of imported files, which no reader wants."""
    row = evaluated.row
    slim = replace(row, before=replace(row.before, files=()), after=replace(row.after, files=()))
    return replace(evaluated, row=slim)


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
