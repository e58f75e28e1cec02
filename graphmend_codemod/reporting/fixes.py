"""What `graphmend fix` did, in words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from graphmend_codemod.core.terminal import printable
from graphmend_codemod.engine.api import FileFix, FixResult
from graphmend_codemod.reporting.report import FixStatus, count_kinds, for_newer_torch, kind_of, plural, shown_path


def line(change: FileFix, root: Path) -> str:
    """One line for a changed file: which rules were applied how often."""
    counts = Counter(finding.code for finding in change.applied)
    rules = ", ".join(code if count == 1 else f"{code} x{count}" for code, count in sorted(counts.items()))
    return f"{printable(shown_path(change.path, root))}: {rules or 'functions that fixed files import'}"


def summary(
    result: FixResult, *, unsafe_fixes: bool, written: bool, opaque: bool = False, told: str = "graphmend check"
) -> str:
    """One line for the whole run: `Fixed 3 break sites in 2 files (1 declined, see graphmend check).`

    `told` is the command that tells of what is left.
    """
    sites = sum(len(change.applied) for change in result.fixes)
    if sites:
        verb = "Fixed" if written else "Would fix"
        files = sum(bool(change.applied) for change in result.fixes)
        done = f"{verb} {plural(sites, 'break site')} in {plural(files, 'file')}"
        outlined = sum(kind_of(each) is FixStatus.OPAQUE for change in result.fixes for each in change.applied)
        done += f", {outlined} as {'an opaque operator' if outlined == 1 else 'opaque operators'}" if outlined else ""
    else:
        said = "Fixed nothing" if any(not each.aside for each in result.problems) else "Nothing to fix"
        done = f"{said} in {plural(result.files, 'file')}"
    kinds = count_kinds(result.remaining)
    left = [f"{kinds[kind]} {kind.value}" for kind in (FixStatus.DECLINED, FixStatus.ADVICE) if kinds[kind]]
    if kinds[FixStatus.UNSAFE] and not unsafe_fixes:
        left.insert(0, f"{kinds[FixStatus.UNSAFE]} more with --unsafe-fixes")
    if kinds[FixStatus.OPAQUE] and not opaque:
        left.insert(0, f"{kinds[FixStatus.OPAQUE]} more with --opaque")
    aside = sum(problem.aside for problem in result.problems)
    unparsed = f" {plural(aside, 'file')} without torch cannot be parsed." if aside else ""
    if older := for_newer_torch(result.remaining):
        unparsed = f" {older.fixes} more may be fixable with --target-torch {older.version}.{unparsed}"
    return (f"{done} ({', '.join(left)}, see {told})." if left else f"{done}.") + unparsed
