"""What decides, after a statement, by a number or a count of rows that only the data tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import TypeGuard

from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.exceptions import caught_above
from graphmend_codemod.rules.proofs.outlining.symbols.skipped_code import condition_to_skip
from graphmend_codemod.rules.proofs.outlining.symbols.values_asked import decisions_in
from graphmend_codemod.rules.proofs.untraced.evidence import assigned
from graphmend_codemod.rules.proofs.untraced.places import break_at

_HOW_LARGE = frozenset({"nelement", "numel", "shape", "size"})
_LISTS = (ast.ListComp, ast.List)
_AROUND = (ast.Try, ast.With)
_THROUGH = frozenset({"enumerate", "reversed", "zip"})


def avoided(site: Site, statement: ast.stmt, *, is_number: bool) -> tuple[list[str], str | None]:
    """The conditions under which nothing in Python needs the value of what the statement reads, and why there are none.

    A number that a function returns may come to code of Python alone, for which it has no value while Dynamo traces.
    """
    if (
        isinstance(statement, ast.Return)
        and is_number
        and not (statement.value and site.value(statement.value).is_tensor)
    ):
        return [], f"`{short(statement)}` hands the number to a caller that may need its value while Dynamo traces"
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    bound = [part for each in targets if each is not None for part in walk(each) if _is_stored(part)]
    held = next((part for part in bound if isinstance(part, ast.Attribute)), None)
    facts = site.evaluator.scope.class_facts
    if held is not None and is_number and (facts is None or facts.is_module):
        return [], f"`{short(held)}` keeps the number after the call, and a symbol has no value outside of the graph"
    names = {part.id for part in bound if isinstance(part, ast.Name)}
    conditions: dict[str, None] = {}
    for name, node, test in _deciders(site, statement, names, is_number=is_number):
        condition = condition_to_skip(site, statement, node, test)
        if condition is None:
            return [], f"a branch or loop depends on `{name}`, and the graph breaks there"
        conditions[condition] = None
    return [*conditions], None


def _deciders(
    site: Site, statement: ast.stmt, names: set[str], *, is_number: bool
) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    """What decides by one of the names after the statement: the name, the place, and the test there."""
    if not names:
        return
    handlers = [node for node in walk(site.evaluator.scope.node) if isinstance(node, ast.ExceptHandler)]
    failing = {id(part) for handler in handlers for part in walk(handler)}
    loops = [each for each in site.place.parents if isinstance(each, (ast.For, ast.While))]
    again = {id(part) for loop in loops for part in walk(loop)}
    here = set() if loops else {id(part) for part in walk(statement)}
    lists = _lists(site, statement)
    elements = {part for node, tests in _decisions(site) if lists for part in _elements(node, tests[0], lists)}
    counted = _counted_in(site.evaluator.scope.node) if elements else []
    sized = any(part.id in elements for each in counted for part in _names(each))
    for node, tests in _decisions(site):
        if _is_traced(site, node) or (id(node) in here and lists):
            continue
        for test in tests:
            if _gone_through(node, test, lists) and (is_number or not sized):
                continue
            whole = is_number or isinstance(node, (ast.For, ast.comprehension))
            asked = [test] if whole else _counted_in(test)
            known = {id(part) for each in asked for part in _lengths(each, lists)}
            read = (part for each in asked for part in walk(each) if isinstance(part, ast.Name))
            name = next((part.id for part in read if part.id in names | elements and id(part) not in known), None)
            comes_after = getattr(node, "lineno", statement.lineno) >= statement.lineno or id(node) in again
            if name is not None and comes_after and id(node) not in failing:
                yield name, node, test


def _is_traced(site: Site, node: ast.AST) -> bool:
    """True for an assertion that Dynamo keeps as one of the graph, whatever its numbers are.

    `assert n <= 6, "too long"`: not where it computes a message, or has several tests (torch 2.13,
    `torch/_dynamo/symbolic_convert.py`, `generic_jump`), nor where somebody may catch what eager mode raises.
    """
    if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare) or len(node.test.ops) > 1:
        return False
    if node.msg is not None and not isinstance(node.msg, ast.Constant):
        return False
    around = (each for each in walk(site.evaluator.scope.node) if isinstance(each, _AROUND))
    inside = any(part is node for each in around for part in walk(each))
    return not inside and caught_above(site, torch_alone=True) is None


def _lists(site: Site, statement: ast.stmt) -> set[str]:
    """The name that the statement gives a list of Python: what its elements are depends on the data, not its length.

    `t.tolist()` has as many elements as `t` has rows, which Dynamo does not know of rows that data chooses.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return set()
    target, value = statement.targets[0], statement.value
    is_method = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    read = is_method and value.func.attr == "tolist" and not _is_chosen(site, value.func.value)  # type: ignore[attr-defined]
    return {target.id} if isinstance(target, ast.Name) and (read or isinstance(value, _LISTS)) else set()


def _is_chosen(site: Site, node: ast.expr) -> bool:
    """True for rows of a tensor that data chooses, also by the name that the function gives them."""
    values = [node, *(assigned(site, node.id) if isinstance(node, ast.Name) else ())]
    parts = (part for each in values for part in walk(each) if isinstance(part, (ast.Call, ast.Subscript)))
    return any(break_at(site, part) is not None for part in parts)


def _gone_through(node: ast.AST, test: ast.expr, lists: set[str]) -> list[ast.expr]:
    """What a loop goes through together, where one of the lists is among it: `zip(x, lengths)`. Else nothing."""
    if not isinstance(node, (ast.For, ast.comprehension)) or test is not node.iter:
        return []
    together = isinstance(test, ast.Call) and not test.keywords and _called(test) in _THROUGH
    given = test.args if isinstance(test, ast.Call) and together else [test]
    return given if any(isinstance(each, ast.Name) and each.id in lists for each in given) else []


def _called(node: ast.expr) -> str:
    """`zip` for `zip(x, y)`, nothing for calls of anything else than a name."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _elements(node: ast.AST, test: ast.expr, lists: set[str]) -> Iterator[str]:
    """The names that a loop over one of the lists gives its elements."""
    given = _gone_through(node, test, lists)
    if not given or not isinstance(node, (ast.For, ast.comprehension)):
        return
    targets: list[ast.expr] = [node.target]
    if isinstance(node.target, ast.Tuple) and _called(test) in ("zip", "enumerate"):
        bound = node.target.elts[1:] if _called(test) == "enumerate" else node.target.elts
        if len(bound) == len(given):
            pairs = zip(bound, given, strict=True)
            targets = [one for one, each in pairs if isinstance(each, ast.Name) and each.id in lists]
    yield from (part.id for each in targets for part in _names(each))


def _lengths(test: ast.expr, lists: set[str]) -> Iterator[ast.Name]:
    """The names of lists in a test of which it only asks the length, or what they are."""
    for part in walk(test):
        if isinstance(part, ast.Call) and (is_name(part.func, "len") or is_name(part.func, "isinstance")):
            yield from (each for each in part.args if isinstance(each, ast.Name) and each.id in lists)


def _decisions(site: Site) -> list[tuple[ast.AST, list[ast.expr]]]:
    """What decides in the function what runs next, with the expressions whose values do."""
    function = site.evaluator.scope.node
    return site.remembered("decisions", function, partial(decisions_in, function), anywhere=True)


def _names(node: ast.AST) -> list[ast.Name]:
    return [part for part in walk(node) if isinstance(part, ast.Name)]


def _counted_in(test: ast.AST) -> list[ast.expr]:
    """Those parts of a test that ask how large a tensor is."""
    return [
        part
        for part in walk(test)
        if (isinstance(part, ast.Attribute) and part.attr in _HOW_LARGE)
        or (isinstance(part, ast.Call) and is_name(part.func, "len"))
    ]


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
