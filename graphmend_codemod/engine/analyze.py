"""One file's functions to findings: what the settings select and the file's own comments let through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend_codemod.core.discovery import is_generated
from graphmend_codemod.core.findings import Finding, Problem
from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.project.loading import digest_of
from graphmend_codemod.project.summary.records import FunctionSummary, ModuleSummary

if TYPE_CHECKING:
    from graphmend_codemod.project.index.dependency_tracking import Answers, Question
    from graphmend_codemod.project.index.facts import ReachedFunction
    from graphmend_codemod.project.index.project_index import ProjectIndex


RECORDED = "recorded"
"""What a function is a candidate for of which a recorded run knows what it held from statement to statement."""
_CANDIDATES = ("test", "log", "value", "rows", "masked", "module")
_GENERATED = "the file says that it is generated: change what it is made from"
_LONGEST_FUNCTION = 150_000  # characters; the longest function of the models in transformers has 23,000


class Task(NamedTuple):
    """A file whose functions are to be analysed, with the digest of the text they were found in if it can change."""

    path: str
    digest: str
    functions: tuple[ReachedFunction, ...]


class Analysed(NamedTuple):
    """What came of a task. `answers` are those of the index that it depends on."""

    path: str
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None
    answers: tuple[tuple[Question, str], ...] = ()


def analyse(
    task: Task, source: SourceFile, index: ProjectIndex, settings: Settings, answers: Answers | None = None
) -> Analysed:
    """Findings in the task's functions, in order of position, or what kept them from being found.

    With `answers` the result says what it depends on.
    """
    from graphmend_codemod.engine import judge
    from graphmend_codemod.project.index.dependency_tracking import RecordingView
    from graphmend_codemod.project.index.facts import NeedsProject

    path = task.path
    if task.digest and digest_of(source.raw) != task.digest:
        problem = Problem(path, "was changed by another process while graphmend ran; run it again")
        return Analysed(path, problem=problem)
    module = index.module_at(path)
    view = RecordingView(index)
    try:
        if module is None or (source.suppressions.skip_file and not settings.see_suppressed):
            return Analysed(path)
        functions, too_long = _short_enough(task.functions, module.summary, source)
        found = judge.find(source, module.summary, functions, view, settings)
        kept = [each for each in found if settings.see_suppressed or not source.suppressed(each.span, each.code)]
        if is_generated(source.raw):
            kept = [each._replace(edit=None, declined=_GENERATED) if each.edit is not None else each for each in kept]
    except NeedsProject:
        raise
    except SourceError as error:
        return Analysed(path, problem=Problem(path, str(error), error.line))
    except RecursionError:
        return Analysed(path, problem=Problem(path, "cannot be analysed: its expressions are nested too deeply"))
    except MemoryError:
        return Analysed(path, problem=Problem(path, "cannot be analysed: out of memory"))
    except Exception as error:  # said in full, with exit code 2; the other files get their findings
        return Analysed(path, problem=Problem.internal(path, error))
    finally:
        view.close()
    ordered = tuple(sorted(kept, key=lambda each: (each.span, each.code)))
    asked = () if answers is None else tuple((question, answers.name(question)) for question in view.asked)
    return Analysed(path, ordered, too_long, asked)


def _short_enough(
    functions: tuple[ReachedFunction, ...], summary: ModuleSummary, source: SourceFile
) -> tuple[tuple[ReachedFunction, ...], Problem | None]:
    """The functions without those that would take minutes, by the square of their length, and a word about these."""
    if len(source.text) < _LONGEST_FUNCTION:
        return functions, None
    ends = {(each.qualname, each.line): each.end_line for each in summary.functions}
    starts = source.line_starts
    sizes = [starts[min(ends[each.qualname, each.line], len(starts) - 1)] - starts[each.line - 1] for each in functions]
    kept = tuple(each for each, size in zip(functions, sizes, strict=True) if size < _LONGEST_FUNCTION)
    if len(kept) == len(functions):
        return functions, None
    long = next(each for each, size in zip(functions, sizes, strict=True) if size >= _LONGEST_FUNCTION)
    said = f"`{long.qualname}` is longer than {_LONGEST_FUNCTION // 1000} kB, which is not analysed; split it"
    return kept, Problem(summary.path, said, long.line)


def candidates(summary: ModuleSummary, settings: Settings) -> dict[tuple[str, int], tuple[str, ...]]:
    """What there is for rules to look at in the functions of a module, by qualified name and line.

    The cheap look of a summary takes some tests and calls for Python's. Where Dynamo traced a function, a run knows
    better, and everything is looked at.
    """
    seen = {function for path, function in settings.seen_functions if path == summary.path}
    recorded = {each.function for each in settings.seen_calls if each.path == summary.path}
    found = {}
    for each in summary.functions:
        every = tuple(dict.fromkeys((*each.candidates, *_CANDIDATES))) if each.qualname in seen else each.candidates
        every = (*every, RECORDED) if each.qualname in recorded else every
        if every:
            found[each.qualname, each.line] = every
    return found


def with_candidates(
    summary: ModuleSummary, functions: Iterable[ReachedFunction], settings: Settings
) -> tuple[ReachedFunction, ...]:
    """Those of the functions that hold anything that a rule could look at."""
    worth = candidates(summary, settings) if summary.path != settings.helpers else ()
    return tuple(function for function in functions if (function.qualname, function.line) in worth)


def as_if_reached(summary: ModuleSummary, settings: Settings) -> tuple[ReachedFunction, ...]:
    """Every function that holds candidates, for want of knowing which are reached."""
    worth = candidates(summary, settings) if summary.path != settings.helpers else ()
    functions = [each for each in summary.functions if each.qualname and (each.qualname, each.line) in worth]
    if not functions:
        return ()
    from graphmend_codemod.project.index.facts import ReachedFunction

    return tuple(ReachedFunction(each.qualname, each.line, _owner(summary, each)) for each in functions)


def _owner(summary: ModuleSummary, function: FunctionSummary) -> str | None:
    return f"{summary.name}.{function.owner}" if function.owner and "staticmethod" not in function.decorators else None


def in_order(problems: Iterable[Problem | None]) -> tuple[Problem, ...]:
    """Problems without repetition, by path, line and text."""
    known = {problem for problem in problems if problem is not None}
    return tuple(sorted(known, key=lambda each: (each.path, each.line or 0, each.message)))


def by_weight(tasks: Sequence[Task], parts: int) -> list[list[Task]]:
    """Tasks dealt out to this many lists of about the same number of functions, always in the same way."""
    dealt: list[list[Task]] = [[] for _ in range(parts)]
    weights = [0] * parts
    for task in sorted(tasks, key=lambda each: (-len(each.functions), each.path)):
        lightest = weights.index(min(weights))
        dealt[lightest].append(task)
        weights[lightest] += len(task.functions) + 1
    return [part for part in dealt if part]
