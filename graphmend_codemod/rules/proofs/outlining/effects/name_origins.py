"""Which names the values of others may share memory with, in a part of a function: what all walks over effects ask."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_given, assigned_pairs, stored_names
from graphmend_codemod.analysis.scope import children, of_kind
from graphmend_codemod.analysis.value_flow import closure


class NameOrigins(ABC):
    """The names that some nodes of one function bind, and where their values come from.

    A subclass says which names have a value before (`is_kept`) and what an expression shares memory with (`parts`).
    `fillers` are methods that put their arguments into their object.
    """

    fillers: frozenset[str] = frozenset()

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.nodes = nodes
        self.stored = stored_names(nodes)

    @abstractmethod
    def is_kept(self, name: str) -> bool:
        """True for a name that the nodes bind and that may hold a value from before them."""

    def parts(self, node: ast.expr) -> Iterable[ast.AST]:
        """The parts of an expression, other than a name, whose memory its value may share."""
        if isinstance(node, (ast.Constant, ast.Compare, ast.JoinedStr, ast.UnaryOp)):
            return ()
        if isinstance(node, ast.Attribute) and node.attr in torch_api.PYTHON_ATTRIBUTES:
            return ()
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            return (node.value,)
        return self.called_parts(node) if isinstance(node, ast.Call) else children(node)

    def called_parts(self, call: ast.Call) -> Iterable[ast.AST]:
        """Those of a call: all that it is given, where nothing is known of what it runs."""
        return all_given(call)

    def holders(self, target: ast.expr) -> Iterable[str]:
        """The names that refer to a value once `target` is bound to it."""
        return (part.id for part in of_kind(ast.walk(target), ast.Name) if not isinstance(part.ctx, ast.Load))

    def roots(self, node: ast.expr) -> set[str]:
        """The names whose memory the value of an expression may share."""
        if isinstance(node, ast.Name):
            return {node.id}
        return {name for part in self.parts(node) if isinstance(part, ast.expr) for name in self.roots(part)}

    def outside(self, names: Collection[str]) -> set[str]:
        """The names from outside of the nodes that these lead to."""
        return {name for name in self.origins(names) if name not in self.stored or self.is_kept(name)}

    def origins(self, names: Collection[str]) -> set[str]:
        """These names and all whose values they may share memory with."""
        return set(
            closure(names, lambda name: (root for value in self._values.get(name, ()) for root in self.roots(value)))
        )

    @cached_property
    def _values(self) -> dict[str, list[ast.expr]]:
        found: dict[str, list[ast.expr]] = {}
        for target, value in (pair for node in self.nodes for pair in self.bound_by(node)):
            for name in self.holders(target):
                found.setdefault(name, []).append(value)
        return found

    def bound_by(self, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Targets with what an assignment, a loop, or a call that fills a container gives them."""
        if isinstance(node, (ast.For, ast.comprehension)):
            yield from self.in_step(node.target, node.iter)
        yield from assigned_pairs(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in self.fillers:
            yield from ((node.func.value, argument) for argument in node.args)

    def in_step(self, target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Targets of a loop with what they get their values from."""
        yield target, iterated
