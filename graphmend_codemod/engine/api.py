"""Files to findings to fixed text: the whole engine behind the commands, in parallel and cached."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.atomic_write import remove_leftovers, write_atomically
from graphmend_codemod.core.discovery import discover, relative_path
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import MOST_READ, SourceError, SourceFile
from graphmend_codemod.engine.fixpoint import FileFix, Fixing, Proof, Veto
from graphmend_codemod.engine.session import Checker
from graphmend_codemod.project.loading import without_cyclic_collector

__all__ = ["CheckResult", "FileFix", "FixResult", "check", "check_text", "fix", "fix_text"]


class CheckResult(NamedTuple):
    """Findings in order of path and position, suppressed ones left out; `files` counts the files considered.

    `notes` are for the user to know and cost nothing. `texts` has the cells of notebooks that findings are in.
    """

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    notes: tuple[str, ...] = ()
    texts: Mapping[str, bytes] = {}


class FixResult(NamedTuple):
    """`remaining` are the findings in the text as it is after fixing."""

    fixes: tuple[FileFix, ...]
    remaining: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    notes: tuple[str, ...] = ()


def check(
    paths: Sequence[Path], settings: Settings, *, jobs: int = 1, cache: bool = True, checker: Checker | None = None
) -> CheckResult:
    """Check files and folders. Reads only. `paths` empty means the project root. `checker` may know some already."""
    files = discover(paths, settings)
    with without_cyclic_collector():
        checker = checker or Checker(settings, jobs=jobs, cache=cache)
        found = checker.check(files.files, named=files.named)
    notes = (*checker.notes, *_left_out(files.foreign))
    result = CheckResult(found.findings, (*files.problems, *found.problems), len(files.files), notes)
    if not files.notebooks:
        return result
    from graphmend_codemod.engine import notebooks

    told = notebooks.check(files.notebooks, settings)
    ordered = sorted((*result.findings, *told.findings), key=lambda each: (each.path, each.cell, each.span, each.code))
    return result._replace(
        findings=tuple(ordered),
        problems=(*result.problems, *told.problems),
        files=result.files + len(files.notebooks),
        texts=told.texts,
    )


def _left_out(count: int) -> list[str]:
    said = (
        "1 file in a vendored or build folder was" if count == 1 else f"{count} files in vendored or build folders were"
    )
    return [f"{said} not read; name what to read with `include` in the settings"] if count else []


def check_text(text: bytes, path: Path, settings: Settings) -> CheckResult:
    """Check one text as if it stood at `path`, which may be a notebook's."""
    if path.suffix == ".ipynb":
        from graphmend_codemod.engine import notebooks

        name = notebooks.relative(path, settings)
        told = notebooks.check([name], settings, {name: text})
        return CheckResult(told.findings, told.problems, 1, (), told.texts)
    source = _source(text, path, settings)
    if isinstance(source, Problem):
        return CheckResult((), (source,), 1)
    with without_cyclic_collector():
        checker = Checker(settings)
        checker.overlay(source)
        found = checker.check((source.path,), named=True)
    return CheckResult(found.findings, found.problems, 1)


def _that_may_change(files: Sequence[str], settings: Settings) -> Sequence[str]:
    """Of a recorded run only the files of its sites: nothing else is fixed, so nothing else has to be judged."""
    if settings.only_sites is None:
        return files
    sites = {path for path, *_ in settings.only_sites}
    return [path for path in files if path in sites]


def fix(
    paths: Sequence[Path],
    settings: Settings,
    *,
    write: bool,
    jobs: int = 1,
    cache: bool = True,
    vetoes: Sequence[Veto] = (),
    checker: Checker | None = None,
    proof: Proof | None = None,
) -> FixResult:
    """Fix files to a fixpoint: safe fixes, with `settings.unsafe_fixes` unsafe ones too. Writes only if `write`.

    What `vetoes` forbid is left, with the veto's reason. `checker` may know some findings already. A file whose new
    text fails `proof` is left alone, and a problem says so.
    """
    files = discover(paths, settings)
    root = os.path.abspath(settings.root)
    folders = {os.path.dirname(path) for path in files.files} if write else ()
    leftovers = tuple(remove_leftovers(os.path.join(root, folder) for folder in sorted(folders)))
    checker = checker or Checker(settings, jobs=jobs, cache=cache, remember=True)
    fixing = Fixing(checker, settings, vetoes, proof)
    wanted = _that_may_change(files.files, settings)
    with without_cyclic_collector():
        if wanted or settings.only_sites is None:
            fixing.run(wanted, named=files.named)
    fixes, unwritten = _written(fixing, settings) if write else (fixing.changes(), [])
    notes = (*leftovers, *checker.notes, *fixing.notes)
    fixes = sorted(fixes, key=lambda each: each.path)
    problems = (*files.problems, *fixing.problems, *unwritten)
    result = FixResult(tuple(fixes), fixing.remaining, problems, len(files.files), notes)
    if not files.notebooks:
        return result
    from graphmend_codemod.engine import notebooks

    told = notebooks.fix(files.notebooks, settings, write=write, vetoes=vetoes, proof=proof)
    return FixResult(
        tuple(sorted((*result.fixes, *told.fixes), key=lambda each: each.path)),
        (*result.remaining, *told.findings),
        (*result.problems, *told.problems),
        result.files + len(files.notebooks),
        notes,
    )


def _written(fixing: Fixing, settings: Settings) -> tuple[list[FileFix], list[Problem]]:
    """The changes of a run, in files now, and why others are not."""
    fixes: list[FileFix] = []
    problems: list[Problem] = []
    missing = False
    # The module of helpers comes first: nothing is to import what it does not have.
    for change in sorted(fixing.changes(), key=lambda each: (each.path != settings.helpers, each.path)):
        if missing and fixing.needs_helpers(change.path):
            problems.append(Problem(change.path, f"was not changed: {settings.helpers} could not be written"))
            continue
        try:
            write_atomically(settings.root / change.path, change.before, change.after, root=settings.root)
        except SourceError as error:
            problems.append(Problem(change.path, str(error)))
            missing = missing or change.path == settings.helpers
        else:
            fixes.append(change)
    return fixes, problems


def fix_text(text: bytes, path: Path, settings: Settings, *, proof: Proof | None = None) -> FixResult:
    """Fix one text as if it stood at `path`; nothing is written. See `fix` for `proof`. It may be a notebook's."""
    if path.suffix == ".ipynb":
        from graphmend_codemod.engine import notebooks

        name = notebooks.relative(path, settings)
        told = notebooks.fix([name], settings, write=False, given={name: text}, proof=proof)
        return FixResult(told.fixes, told.findings, told.problems, 1)
    source = _source(text, path, settings)
    if isinstance(source, Problem):
        return FixResult((), (), (source,), 1)
    checker = Checker(settings, remember=True)
    checker.overlay(source)
    fixing = Fixing(checker, settings, proof=proof, alone=True)
    with without_cyclic_collector():
        fixing.run((source.path,), named=True)
    return FixResult(tuple(fixing.changes()), fixing.remaining, tuple(fixing.problems), 1)


def _source(text: bytes, path: Path, settings: Settings) -> SourceFile | Problem:
    try:
        if len(text) > MOST_READ:
            raise SourceError(f"is larger than {MOST_READ >> 20} MiB, which is not read")
        return SourceFile.from_bytes(text, path, settings.root)
    except SourceError as error:
        name = relative_path(os.path.abspath(path), os.path.abspath(settings.root))
        return Problem(name, str(error), error.line)
