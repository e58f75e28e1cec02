"""An annotation that says nothing (`x: object = y`) changes no verdict: every rule's examples are judged as without."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from graphmend_codemod.core.findings import Safety
from graphmend_codemod.rules.framework.examples import Clean, Declined, Example
from graphmend_codemod.rules.framework.registry import all_rules
from tests.tools.behaviour import EVERYTHING
from tests.tools.fixes import checked, embedded

SOURCES = [
    pytest.param(embedded(source, each.setup), id=f"{rule.code}-{number}")
    for rule in all_rules()
    for number, each in enumerate(rule.examples, 1)
    if isinstance(each, (Clean, Declined, Example)) and (EVERYTHING or number % 3 == 1)
    for source in [each.before if isinstance(each, Example) else each.source]
]


class _Changed(ast.NodeTransformer):
    """Puts what `change` makes in the place of what functions assign to one name."""

    def __init__(self, change: Callable[[ast.Name, ast.Assign], list[ast.stmt]]) -> None:
        self.change = change
        self.inside = self.count = 0
        self.outer: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        before, self.outer = (
            self.outer,
            self.outer
            | {name for part in ast.walk(node) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names},
        )
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        self.outer = before
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        target = node.targets[0]
        if not self.inside or len(node.targets) > 1 or not isinstance(target, ast.Name) or target.id in self.outer:
            return node
        self.count += 1
        return self.change(target, node)


def _annotated(target: ast.Name, node: ast.Assign) -> list[ast.stmt]:
    return [ast.AnnAssign(target, ast.Name("object", ast.Load()), node.value, simple=1)]


def _after_annotation(target: ast.Name, node: ast.Assign) -> list[ast.stmt]:
    said = ast.Name("object", ast.Load())
    return [ast.AnnAssign(ast.Name(target.id, ast.Store()), said, None, simple=1), node]


def _after_nothing(target: ast.Name, node: ast.Assign) -> list[ast.stmt]:
    return [ast.Pass(), node]


def _plain(target: ast.Name, node: ast.Assign) -> list[ast.stmt]:
    return [node]


@pytest.mark.parametrize("source", SOURCES)
def test_the_verdict_is_that_without_an_annotation(source: str) -> None:
    for annotated, without in ((_annotated, _plain), (_after_annotation, _after_nothing)):
        assert _verdicts(source, annotated) == _verdicts(source, without)


def _verdicts(
    source: str, change: Callable[[ast.Name, ast.Assign], list[ast.stmt]]
) -> list[tuple[str, int, bool, Safety]]:
    changed = _Changed(change)
    text = ast.unparse(ast.fix_missing_locations(changed.visit(ast.parse(source))))
    if not changed.count:
        pytest.skip("nothing is assigned")
    found = checked(text, opaque=True).findings
    return [(each.code, each.span.start_line, each.edit is None, each.safety) for each in found]
