"""Questions about concrete statements: their blocks, lines, words and comments, and whether two are the same."""

from __future__ import annotations

import dataclasses
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

import libcst as cst

_NEWLINE = re.compile(r"\r\n?|\n")
_LAYOUT = frozenset(
    {tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.COMMENT}
)
PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
Clause = cst.BaseStatement | cst.Else | cst.Finally | cst.ExceptHandler | cst.ExceptStarHandler | cst.MatchCase
_Children = list[tuple[str, "cst.BaseSuite | Clause"]]


class Lines:
    """How many lines each node of a module has; each is counted once."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self._known: dict[int, int] = {}

    def of(self, node: cst.CSTNode) -> int:
        """How many lines end in a node's code. A block begins with the end of its header's line."""
        found = self._known.get(id(node))
        if found is None:
            found = self._known[id(node)] = self._counted(node)
        return found

    def of_header(self, node: Clause) -> int:
        """How many lines end before the first block begins."""
        if isinstance(node, cst.Match):
            return len(node.leading_lines) + self._in_code(node.subject) + 1
        if isinstance(node, (cst.Try, cst.TryStar)):
            return len(node.leading_lines)
        return len(_NEWLINE.findall(header_text(self.module, node))) - 1

    def _counted(self, node: cst.CSTNode) -> int:
        if isinstance(node, cst.IndentedBlock):
            return 1 + sum(map(self.of, node.body)) + len(node.footer)
        children = children_of(node)
        if not children:
            return self._in_code(node)
        footer = len(node.footer) if isinstance(node, cst.Match) else 0
        return self.of_header(cast(Clause, node)) + sum(self.of(each) for _, each in children) + footer

    def _in_code(self, node: cst.CSTNode) -> int:
        return len(_NEWLINE.findall(self.module.code_for_node(node)))


def words(text: str) -> list[str]:
    """The words of a piece of code as they are spelled, without layout and comments; `elif` counts as `if`."""
    found = [token.string for token in _tokens(text) if token.type not in _LAYOUT and token.string != ";"]
    return ["if" if word == "elif" else word for word in found]


def holds(given: Sequence[str], wanted: Sequence[str]) -> bool:
    """True if all wanted words are given, in their order."""
    rest = iter(given)
    return all(word in rest for word in wanted)


def comments(text: str) -> list[str]:
    """The comments in a piece of code."""
    return [token.string for token in _tokens(text) if token.type == tokenize.COMMENT] if "#" in text else []


def comments_at_end(node: cst.CSTNode) -> int:
    """How many lines follow the code of a statement in its last blocks."""
    footer = node.footer if isinstance(node, (cst.IndentedBlock, cst.Match)) else ()
    below = list(node.body) if isinstance(node, cst.IndentedBlock) else [each for _, each in children_of(node)]
    return len(footer) + (comments_at_end(below[-1]) if below else 0)


def last_statement(node: cst.CSTNode) -> cst.CSTNode:
    """The innermost statement at the end of a statement, clause or block."""
    if isinstance(node, cst.IndentedBlock):
        below: Sequence[cst.CSTNode] = node.body
    else:
        below = [] if is_one_line(node) else [each for _, each in children_of(node)]
    return last_statement(below[-1]) if below else node


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    return tokenize.generate_tokens(io.StringIO(_NEWLINE.sub("\n", text)).readline)


def children_of(node: cst.CSTNode) -> _Children:
    """The blocks of a statement or clause, and the clauses that follow its first block, in their order."""
    found: _Children = []
    for name in PARTS:
        part = getattr(node, name, None)
        if isinstance(part, (cst.BaseSuite, cst.If, cst.Else, cst.Finally)):
            found.append((name, part))
        elif name in ("handlers", "cases") and part is not None:
            found += [(name, each) for each in part]
    return found


def is_one_line(node: cst.CSTNode) -> bool:
    """True for a statement such as `if x: y`."""
    return any(isinstance(each, cst.SimpleStatementSuite) for _, each in children_of(node))


def leading(node: cst.CSTNode) -> Sequence[cst.EmptyLine]:
    """The comments and blank lines above a statement."""
    found: Sequence[cst.EmptyLine] = getattr(node, "leading_lines", ())
    return found


def header_text(module: cst.Module, node: Clause) -> str:
    """A statement without what its blocks hold."""
    empty: dict[str, object] = {"body": cst.SimpleStatementSuite([cst.Pass()])}
    if hasattr(node, "orelse"):
        empty["orelse"] = None
    return module.code_for_node(node.with_changes(**empty))


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(kind) if each.compare)


def same(old: object, new: object) -> bool:
    """Deeply equal, white space and comments included: `CSTNode.deep_equals` in a fifth of its time."""
    waiting = [(old, new)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, cst.CSTNode):
            waiting += [(getattr(left, name), getattr(right, name)) for name in _fields(type(left))]
        elif isinstance(left, (tuple, list)):
            if len(left) != len(cast(Sequence[object], right)):
                return False
            waiting += zip(left, cast(Sequence[object], right), strict=True)
        elif left != right:
            return False
    return True
