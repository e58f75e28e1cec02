"""The text of compile paths that have Python numbers in the place of a tensor, in front of the author's statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from graphmend_codemod.analysis.scope import FunctionNode, parents_in
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Original, Replacement
from graphmend_codemod.rules.framework.edits import line_of, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)


def in_front(
    site: Site, statements: Sequence[ast.stmt], conditions: Sequence[str], lines: Sequence[str]
) -> Replacement:
    """Neighbouring statements, which may be those of another function, with `lines` in front where conditions hold."""
    first, last = site.span(statements[0]), site.span(statements[-1])
    whole = first._replace(end_line=last.end_line, end_column=last.end_column)
    header = site.but(place=site.place._replace(statement=statements[0])).header("if", conditions)
    return Replacement(whole, (under(header, *lines) + "\nelse:\n    ", Original(whole, 1)))


def with_numbers(
    site: Site,
    function: FunctionNode,
    conditions: Sequence[str],
    comment: str,
    texts: Iterable[tuple[ast.expr, str]],
) -> list[Replacement]:
    """The statements around nodes of a function, each with a compile path that has the text in the node's place."""
    parents = parents_in(function)
    written: dict[ast.stmt, dict[int, tuple[ast.expr, str]]] = {}
    for node, text in texts:
        statement: ast.AST = node
        while not isinstance(statement, ast.stmt):
            statement = parents[id(statement)]
        if not isinstance(statement, _SIMPLE):
            raise NotProven(f"`{short(node)}` is in the header of a statement; assign it to a variable first")
        written.setdefault(statement, {})[id(node)] = (node, text)
    return [
        in_front(site, [statement], conditions, [comment, line_of(site.but(written=parts), statement)])
        for statement, parts in written.items()
    ]
