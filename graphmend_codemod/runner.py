"""Files to findings to fixed text: the whole engine behind the commands, in parallel and cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.findings import Finding, Problem
from graphmend_codemod.settings import Settings


@dataclass(frozen=True)
class CheckResult:
    """Findings in order of path and position, suppressed ones left out; `files` counts the files considered."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int


@dataclass(frozen=True)
class FileFix:
    """One file's change. `applied` holds the findings of every pass whose edits were written."""

    path: str
    before: bytes
    after: bytes
    applied: tuple[Finding, ...]


@dataclass(frozen=True)
class FixResult:
    """`remaining` are the findings in the text as it is after fixing."""

    fixes: tuple[FileFix, ...]
    remaining: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int


def check(paths: Sequence[Path], settings: Settings, *, jobs: int = 1, cache: bool = True) -> CheckResult:
    """Check files and folders. Reads only. `paths` empty means the project root."""
    raise NotImplementedError


def check_text(text: bytes, path: Path, settings: Settings) -> CheckResult:
    """Check one text as if it stood at `path`."""
    raise NotImplementedError


def fix(
    paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int = 1, cache: bool = True
) -> FixResult:
    """Fix files to a fixpoint: safe fixes, with `settings.unsafe_fixes` unsafe ones too. Writes only if `write`."""
    raise NotImplementedError


def fix_text(text: bytes, path: Path, settings: Settings) -> FixResult:
    """Fix one text as if it stood at `path`; nothing is written."""
    raise NotImplementedError
