"""One file's functions to findings: what the settings select and the file's own comments let through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from graphmend_codemod.findings import Finding, Problem
from graphmend_codemod.project.facts import IndexView, ReachedFunction
from graphmend_codemod.project.summary import FunctionSummary, ModuleSummary
from graphmend_codemod.settings import Settings
from graphmend_codemod.source import SourceError, SourceFile


def findings_in(
    source: SourceFile,
    summary: ModuleSummary,
    functions: Sequence[ReachedFunction],
    index: IndexView,
    settings: Settings,
) -> tuple[tuple[Finding, ...], Problem | None]:
    """Findings in these functions, in order of position, or what kept them from being found."""
    from graphmend_codemod import engine

    settings = for_file(settings, source.path)
    try:
        if source.suppressions.skip_file:
            return (), None
        found = engine.find(source, summary, functions, index, settings)
        kept = [
            each for each in found if is_selected(each.code, settings) and not source.suppressed(each.span, each.code)
        ]
    except SourceError as error:
        return (), Problem(source.path, str(error), error.line)
    except RecursionError:
        return (), Problem(source.path, "cannot be analysed: its expressions are nested too deeply")
    return tuple(sorted(kept, key=lambda each: (each.span, each.code))), None


def for_file(settings: Settings, path: str) -> Settings:
    """The settings with the ignores that `per-file-ignores` adds for this path."""
    name = path.rpartition("/")[2]
    extra = [
        code
        for pattern, codes in settings.per_file_ignores
        if fnmatch(path, pattern) or fnmatch(name, pattern)
        for code in codes
    ]
    return replace(settings, ignore=(*settings.ignore, *extra)) if extra else settings


def is_selected(code: str, settings: Settings) -> bool:
    """True when `select` names the code, by prefix, and `ignore` does not."""
    return code.startswith(settings.select) and not (settings.ignore and code.startswith(settings.ignore))


def with_candidates(summary: ModuleSummary, functions: Iterable[ReachedFunction]) -> tuple[ReachedFunction, ...]:
    """Those of the functions that hold anything that a rule could look at."""
    worth = {(function.qualname, function.line) for function in summary.functions if function.candidates}
    return tuple(function for function in functions if (function.qualname, function.line) in worth)


def as_if_reached(summary: ModuleSummary) -> tuple[ReachedFunction, ...]:
    """Every function that holds candidates, for want of knowing which are reached."""
    return tuple(
        ReachedFunction(function.qualname, function.line, _owner(summary, function))
        for function in summary.functions
        if function.candidates and function.qualname
    )


def _owner(summary: ModuleSummary, function: FunctionSummary) -> str | None:
    return f"{summary.name}.{function.owner}" if function.owner and "staticmethod" not in function.decorators else None
