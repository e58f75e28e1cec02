"""Judge one file: parse its reached functions, run the dataflow, ask the rules for findings."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmend_codemod.analysis.dataflow import Flow
from graphmend_codemod.analysis.interpreter import Env, Evaluator
from graphmend_codemod.analysis.outline import Outline, outline
from graphmend_codemod.analysis.program_points import LeaksUnknown, ProgramPoint
from graphmend_codemod.analysis.scope import NODE_FIELDS, FunctionNode, Scope, put_children
from graphmend_codemod.analysis.values import FreshNames
from graphmend_codemod.core.findings import Finding, Safety
from graphmend_codemod.core.settings import Settings, selects
from graphmend_codemod.core.source import SourceFile
from graphmend_codemod.engine.analyze import candidates
from graphmend_codemod.engine.function_trees import functions_of, outermost, parse_function
from graphmend_codemod.engine.joined_graphs import first_with_right_gradients
from graphmend_codemod.engine.other_breaks import Judged, other_breaks_of, without_idle_fixes
from graphmend_codemod.engine.precedence import best_rank, uncovered
from graphmend_codemod.engine.suspected_tensors import suspected
from graphmend_codemod.project.index.facts import IndexView, ReachedFunction
from graphmend_codemod.project.summary.candidates import FOREIGN, FOREIGN_NAMES
from graphmend_codemod.project.summary.imports import import_root
from graphmend_codemod.project.summary.records import ModuleSummary
from graphmend_codemod.rules.framework.ask_table import CODES
from graphmend_codemod.rules.framework.registry import worth_asking
from graphmend_codemod.rules.framework.rule import Asked, Diagnostic, Match, Rule
from graphmend_codemod.rules.framework.site import Site

if TYPE_CHECKING:
    from graphmend_codemod.analysis.list_provenance import Origins

_Matches = tuple[tuple[Rule, Asked, "Sequence[int] | None"], ...]
"""Rules with what they ask, and the lines where the words stand that have to be in the node."""
_NESTED_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class _Unit(NamedTuple):
    """One reached function, parsed."""

    reached: ReachedFunction
    flow: Flow
    evaluator: Evaluator
    candidates: tuple[str, ...]


def find(
    source: SourceFile,
    summary: ModuleSummary,
    functions: Sequence[ReachedFunction],
    index: IndexView,
    settings: Settings,
) -> list[Finding]:
    """Findings in `functions` of the module that `summary` describes, in order of position.

    Rules are asked function by function, statement by statement. Then findings are left out: fixes that another break
    makes useless, rules that the settings do not select, and what is said of text that another fix rewrites.
    """
    interesting = candidates(summary, settings)
    wanted = {key: reached for reached in functions if (key := (reached.qualname, reached.line)) in interesting}
    if not wanted:
        return []
    listed = any("list" in function.candidates for function in summary.functions)
    lists = _lists(source, summary, index) if listed else None
    judged: list[Judged] = []
    file = _FileFacts(
        summary.name, index, wanted, interesting, lists, _seen(settings, source.path), _imports_foreign(summary)
    )
    for root, prefix in _outermost(source, summary, wanted):
        for unit in _units(root, f"{prefix}{root.name}", file):
            found = _judged(unit, source, summary, settings)
            judged += _with_suspected(unit, source, summary, settings, found)
    findings = without_idle_fixes(judged, unsafe=settings.unsafe_fixes, opaque=settings.opaque)
    unique = {(finding.code, finding.span): finding for finding in uncovered(findings, opaque=settings.opaque)}
    return sorted(unique.values(), key=lambda finding: (finding.span, finding.code))


def _judged(
    unit: _Unit, source: SourceFile, summary: ModuleSummary, settings: Settings, only: Collection[ast.AST] | None = None
) -> list[Judged]:
    """What rules have to say of one function, or of `only` these nodes in it."""
    undecided: set[ast.AST] = set()  # nodes of which a rule asks who else refers to a tensor
    judged = [*_findings_in(unit, source, summary, settings, undecided, only)]
    if undecided:
        judged += _findings_in(_with_leaks(unit), source, summary, settings, set(), undecided)
    return judged


def _with_suspected(
    unit: _Unit, source: SourceFile, summary: ModuleSummary, settings: Settings, found: list[Judged]
) -> list[Judged]:
    """The same findings, with safe fixes of tests that only seem to ask for tensors in the place of those without one.

    A guess is no reason for an edit where another break stays around it.
    """
    for position, each in enumerate(found):
        if each.suspected is None:
            continue
        node, names = each.suspected
        known, evaluator = unit.flow, unit.evaluator
        evaluator = Evaluator(evaluator.scope, evaluator.names, {**names, **evaluator.seen})
        flow = Flow(known.scope, evaluator, known.closure_env, False, known.origins, known.lists)
        flow.run()
        for one in _judged(unit._replace(flow=flow, evaluator=evaluator), source, summary, settings, {node}):
            if one.finding.edit is not None and one.finding.safety is Safety.SAFE and one.selected and not one.tests:
                found[position] = one
    return found


def _imports_foreign(summary: ModuleSummary) -> bool:
    """True for a module that imports a library that Dynamo does not trace, at its top level or in a function."""
    targets = [each.target for each in summary.bindings if each.kind == "import"]
    targets += [target for each in summary.functions for _, target in each.imports]
    return any(import_root(each) in FOREIGN for each in targets)


def _lists(source: SourceFile, summary: ModuleSummary, index: IndexView) -> Origins | None:
    from graphmend_codemod.analysis.callgraph import calls_in
    from graphmend_codemod.analysis.list_provenance import origins  # a commit hook waits for them

    return origins(source.text, lambda: calls_in(source.text), lambda name: index.resolve(summary.name, name))


def _seen(settings: Settings, path: str) -> Mapping[str, Mapping[str, str]]:
    """What names of a file held in a recorded run, as annotations, by function."""
    found: dict[str, dict[str, str]] = {}
    for where, function, name, annotation in settings.seen_types:
        if where == path:
            found.setdefault(function, {})[name] = annotation
    return found


def _outermost(
    source: SourceFile, summary: ModuleSummary, wanted: dict[tuple[str, int], ReachedFunction]
) -> Iterator[tuple[FunctionNode, str]]:
    """The outermost functions that hold the wanted ones, with the qualified prefix in front of their names."""
    whole: dict[int, tuple[FunctionNode, str]] = {}
    for function in outermost(summary, wanted):
        node = parse_function(source, function)
        if node is not None:
            yield node, function.qualname.removesuffix(function.name)
            continue
        if not whole:
            whole.update({root.lineno: (root, prefix) for root, prefix in functions_of(source)})
        if function.line in whole:
            yield whole[function.line]


class _FileFacts(NamedTuple):
    """What all functions of one file have in common. `wanted` are the reached ones by qualname and line, `candidates`
    what those hold that have anything that rules may look at. `seen` are annotations for what names were in a
    recorded run, by function. `foreign` is true where it imports a library that Dynamo does not trace."""

    module: str
    view: IndexView
    wanted: Mapping[tuple[str, int], ReachedFunction]
    candidates: Mapping[tuple[str, int], tuple[str, ...]]
    lists: Origins | None
    seen: Mapping[str, Mapping[str, str]]
    foreign: bool


def _units(node: FunctionNode, qualname: str, file: _FileFacts) -> Iterator[_Unit]:
    """The reached functions in an outermost one, outer ones first."""
    return _units_in(node, qualname, FreshNames(), file, frozenset(), {}, None)


def _units_in(
    node: FunctionNode,
    qualname: str,
    names: FreshNames,
    file: _FileFacts,
    closure: frozenset[str],
    env: Env,
    class_qualified: str | None,
) -> Iterator[_Unit]:
    reached = file.wanted.get((qualname, node.lineno))
    if reached is not None and reached.class_qualified is not None:
        class_qualified = reached.class_qualified
    scope = Scope(file.module, file.view, node, class_qualified, outline(node), closure)
    if file.foreign:
        scope.outline.notes[FOREIGN_NAMES] = True
    evaluator = Evaluator(scope, names, file.seen.get(qualname))
    pairs = file.lists.lists.get((qualname, node.lineno), {}) if file.lists is not None else {}
    flow = Flow(scope, evaluator, env, follow_leaks=False, origins=file.lists, lists=pairs)
    flow.run()
    if reached is not None:
        yield _Unit(reached, flow, evaluator, file.candidates[qualname, node.lineno])
    for inner in scope.outline.nested:
        inner_env = flow.nested.get(id(inner), {})
        kept = {key: value for key, value in inner_env.items() if value.callee is not None}
        owner = None if reached else class_qualified
        yield from _units_in(inner, f"{qualname}.{inner.name}", names, file, closure | scope.locals, kept, owner)


def _with_leaks(unit: _Unit) -> _Unit:
    """The unit with a dataflow that knows who else refers to a tensor: few functions need it, and it costs most."""
    known = unit.flow
    flow = Flow(known.scope, unit.evaluator, known.closure_env, origins=known.origins, lists=known.lists)
    flow.run()
    return unit._replace(flow=flow)


def _findings_in(
    unit: _Unit,
    source: SourceFile,
    summary: ModuleSummary,
    settings: Settings,
    undecided: set[ast.AST],
    only: Collection[ast.AST] | None = None,
) -> Iterator[Judged]:
    """What rules have to say, about `only` these nodes if they are given.

    Nodes for which it takes a dataflow that follows leaks are put into `undecided`.
    """
    codes = _selected(settings, source.path if settings.per_file_ignores else "")
    matches = _matches_for(unit, settings.opaque)
    for place in unit.flow.places.values():
        if place.handled:
            continue
        for node in _matched_nodes(place, unit.evaluator, matches):
            if only is not None and node not in only:
                continue
            asked = _asked_of(node, matches[node.__class__])
            if not asked:
                continue
            site = Site(node, place, unit.flow, unit.evaluator, source, summary, settings, unit.reached.qualname)
            try:
                found = first_with_right_gradients(site, asked)
            except LeaksUnknown:
                undecided.add(node)
                continue
            if found is None:
                continue
            from graphmend_codemod.engine.applicable import applicable  # a commit hook that finds nothing does without

            rule, diagnostic = found
            finding = _finding(rule, applicable(diagnostic, rule, site, unit.reached), site)
            tests = other_breaks_of(site, finding.edit) if finding.edit is not None else ()
            yield Judged(finding, tests, rule.code in codes, suspected(site) if finding.edit is None else None)


def _finding(rule: Rule, diagnostic: Diagnostic, site: Site) -> Finding:
    safety = rule.safety_of(diagnostic)
    return Finding(
        code=rule.code,
        slug=rule.slug,
        path=site.source.path,
        span=site.span(diagnostic.node or site.node),
        message=diagnostic.message,
        safety=safety,
        function=site.function,
        edit=diagnostic.edit if safety is not Safety.ADVICE else None,
        declined=diagnostic.declined,
        needs_torch=diagnostic.needs_torch,
    )


@lru_cache(maxsize=4)
def _selected(settings: Settings, path: str) -> frozenset[str]:
    """The codes of the rules that the settings select for a file."""
    return frozenset(code for code in CODES if selects(settings, code, path))


def _matches_for(unit: _Unit, opaque: bool) -> dict[type[ast.AST], _Matches]:
    """The match functions that may find something in a function, by node type, in the order to ask them in."""
    inside = unit.evaluator.scope.outline
    kinds: set[type[ast.AST]] = {place.statement.__class__ for place in unit.flow.places.values()}
    if inside.conditional_lines:
        kinds.add(ast.IfExp)
    found: dict[type[ast.AST], _Matches] = {}
    lines: dict[Match, Sequence[int] | None] = {}
    words = {**inside.words, FOREIGN_NAMES: ()} if FOREIGN_NAMES in inside.notes else inside.words
    for kind in kinds:
        worth = list(worth_asking(kind.__name__, unit.candidates, words))
        worth.sort(key=lambda each: best_rank(each[0], opaque))
        for _, asked in worth:
            if asked.match not in lines:
                lines[asked.match] = _lines(asked, inside)
        if worth:
            found[kind] = tuple((rule, asked, lines[asked.match]) for rule, asked in worth)
    return found


def _lines(asked: Asked, outline: Outline) -> Sequence[int] | None:
    """The lines, in order, of which one has to be in a node for the question to be worth asking; None for any."""
    if asked.lines is not None:
        return sorted(asked.lines(outline))
    return sorted(line for word in asked.words for line in outline.words.get(word, ())) if asked.here else None


def _asked_of(node: Any, matches: _Matches) -> list[tuple[Rule, Match]]:
    """Those of the match functions that may find something in this node."""
    first, last = node.lineno, node.end_lineno
    found = []
    for rule, asked, lines in matches:
        if lines is not None:
            following = bisect_left(lines, first)
            if following == len(lines) or lines[following] > last:
                continue
        if asked.when is None or asked.when(node):
            found.append((rule, asked.match))
    return found


def _matched_nodes(
    place: ProgramPoint, evaluator: Evaluator, asked: dict[type[ast.AST], _Matches]
) -> Sequence[ast.AST]:
    """The statement itself and the conditional expressions that it evaluates, without those of nested statements."""
    statement = place.statement
    own = (statement,) if statement.__class__ in asked else ()
    if ast.IfExp not in asked:
        return own
    lines = evaluator.scope.outline.conditional_lines
    following = bisect_left(lines, statement.lineno)
    if following == len(lines) or lines[following] > (statement.end_lineno or 0):
        return own
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return own
    return [*own, *_conditional_expressions(place, evaluator)]


def _conditional_expressions(place: ProgramPoint, evaluator: Evaluator) -> Iterator[ast.IfExp]:
    stack: list[ast.AST] = [
        child
        for name, field in ast.iter_fields(place.statement)
        if name not in _NESTED_BLOCKS
        for child in (field if isinstance(field, list) else [field])
        if isinstance(child, ast.AST)
    ]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.IfExp):
            yield node
            if evaluator.value(node.test, place.env).compiling is not None:
                continue
        if not isinstance(node, ast.Lambda):
            put_children(node, NODE_FIELDS[node.__class__], stack)
