"""What a header asks of buffers that statements touch under one test alone, which Dynamo decides (GM401).

`if self.momentum > 0: self.sums[i] = n` where the constructor makes the buffer under the same test: without it there is
nothing that could be asked, nor need it be.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.speculation import is_loud_property
from graphmend_codemod.rules.framework.site import Site

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp)
_PARTS = (ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop)


def is_known_before(site: Site, test: ast.expr, bound: set[str]) -> bool:
    """True for a test of names and attributes that says the same before statements which bind these names."""
    attributes = [each.attr for each in walk(test) if isinstance(each, ast.Attribute)]
    loud = any(is_loud_property(site.evaluator, each) for each in attributes)
    plain = all(isinstance(each, (*_PLAIN, *_PARTS)) for each in ast.walk(test))
    return plain and not loud and all_names(test).isdisjoint(bound)


def asked_under(
    conditions: Sequence[str], statements: Sequence[ast.stmt], tests: Mapping[str, ast.expr | None]
) -> list[str]:
    """The conditions, those about a buffer of `tests` only where its test holds: `(not (m > 0) or isinstance(...))`.

    They stay as they are where a statement touches the buffer elsewhere, or assigns to what the test reads.
    """
    found = dict.fromkeys(conditions)
    parts = [part for each in statements for part in walk(each) if isinstance(part, ast.Attribute)]
    stored = {dotted(part) for part in parts if part.ctx.__class__ is not ast.Load}
    for held, test in tests.items():
        if test is None or not stored.isdisjoint(_spelled_in(ast.unparse(test))):
            continue
        if _is_touched_under(held, test, statements):
            about = [each for each in found if held in _spelled_in(each)]
            found = dict.fromkeys(each for each in found if each not in about)
            found |= dict.fromkeys(f"(not ({ast.unparse(test)}) or {each})" for each in about)
    return list(found)


def _is_touched_under(held: str, test: ast.expr, statements: Sequence[ast.stmt]) -> bool:
    """True if all that reads or writes the buffer is in the body of an `if` with this test."""
    alike = ast.dump(test)
    nodes = [part for each in statements for part in walk(each)]
    inside = {
        id(part)
        for node in nodes
        if isinstance(node, ast.If) and ast.dump(node.test) == alike
        for each in node.body
        for part in walk(each)
    }
    return all(id(part) in inside for part in nodes if isinstance(part, ast.Attribute) and dotted(part) == held)


def _spelled_in(text: str) -> set[str]:
    """`self.a` and `self.a.dtype`, and all else that is spelled with dots in a condition."""
    parts = ast.walk(ast.parse(text, mode="eval"))
    return {name for part in parts if isinstance(part, ast.Attribute) and (name := dotted(part)) is not None}
