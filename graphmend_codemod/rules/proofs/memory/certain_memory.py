"""What the functions of a module certainly do with memory, where `ModuleMemory` says what they may do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from typing import ClassVar, TypeVar

from graphmend_codemod.analysis import aliasing
from graphmend_codemod.analysis.aliasing import Effect
from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_size, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.rules.proofs.memory.given_writes import (
    HELD,
    SHARING,
    STATISTICS,
    writes_by_word,
)
from graphmend_codemod.rules.proofs.memory.held_tensors import ANY_BUFFER, held_name
from graphmend_codemod.rules.proofs.memory.indirect import method_by_name
from graphmend_codemod.rules.proofs.memory.module_memory import Link, ModuleMemory
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.untraced.evidence import registered

_KEEP_ELEMENTS = frozenset({"requires_grad_", "detach_", "share_memory_", "rename_"})
"""What changes a tensor in place, and none of its elements."""
_ELEMENTS = frozenset({"items", "values"})
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
T = TypeVar("T")


class CertainMemory(ModuleMemory):
    """What functions certainly do: calls that nothing is known of share and write nothing."""

    unknown: ClassVar[frozenset[str]] = frozenset()

    def remembered(self, question: str, about: Hashable, answer: Callable[[], T], meanwhile: T | None = None) -> T:
        """Apart from what functions may do."""
        return super().remembered(f"certain {question}", about, answer, meanwhile)

    def filled(self, function: Definition) -> list[Link]:
        """Nothing: `y[mask] = x` may be a list that has `x` from there on, and mostly is a tensor."""
        del function
        return []

    def _find_effect(self, function: Definition, call: ast.Call) -> Effect:
        called, owner = call.func, getattr(call.func, "value", None)
        named = method_by_name(self.site, call)
        if named is not None:
            return self._find_effect(function, named)
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name.strip("_") in aliasing.IN_PLACE_OPERATORS:
            if name[:2] == "__" and isinstance(called, ast.Attribute):
                return Effect((called.value,), (called.value,))
            first = tuple(call.args[:1])
            return Effect(first, first) if self._is_of_operator(called) else Effect()
        asked = (
            name.endswith("_")
            or name in SHARING
            or name in STATISTICS
            or name in _ELEMENTS
            or is_name(owner, "self")
            or any(writes_by_word(each) for each in call.keywords)
        )
        if not asked and self.calls.callee(function, call) is None:
            return Effect()  # most calls
        found = super()._find_effect(function, call)
        if name in _KEEP_ELEMENTS:
            return found._replace(writes=())
        if name in STATISTICS and not is_name(owner, "self"):  # a layer of this name changes its own statistics
            return found._replace(writes=tuple(call.args[1:3]) or found.writes)
        if not found.known and name.endswith("_") and not name.endswith("__"):
            given = aliasing.operands(call)[:1]  # `torch._foreach_mul_(tensors, 0.5)`
            return Effect(given, given)
        return found if found.known else Effect()

    def sources(self, function: Definition, node: ast.expr) -> set[str]:
        """The same, with what the name of an attribute and an own list of tensors lead to."""
        if isinstance(node, ast.Call) and is_attribute(node.func, "self") and node.func.attr in HELD:
            return {f"self.{each}" for each in self._buffers(function)}
        held = held_name(node)
        if held is not None:
            return {held} if held != ANY_BUFFER else {f"self.{each}" for each in self._buffers(function)}
        found = super().sources(function, node)
        own = (name.partition(".")[2] for name in found if name.startswith("self.") and function.owner)
        return found.union(*(self._listed(function.owner, each) for each in own))

    def bound_before(
        self, function: Definition, blocks: Blocks, statement: ast.stmt, name: str
    ) -> list[ast.Assign | None] | None:
        """The same, also of an attribute of the instance that no other method than a constructor binds."""
        root, dot, attribute = name.partition(".")
        if root != "self" or not dot or not function.owner:
            return super().bound_before(function, blocks, statement, name)
        made = [each.node for each in self.calls.definitions.values() if each.node.name == "__init__"]
        places = [range(each.lineno, (each.end_lineno or 0) + 1) for each in (*made, function.node)]
        stores = self.calls.assigned(function.owner, attribute)
        alone = all(any(each.lineno in place for place in places) for each in stores)
        return blocks.bindings_before(statement, name) if stores and alone else None

    def _is_of_operator(self, called: ast.expr) -> bool:
        return (self.site.resolve_global(called) or "").startswith("operator.")

    def _listed(self, owner: str, attribute: str) -> set[str]:
        """The attributes that a class puts into a list or dict: `self.scales = [self.first, self.second]`."""
        values = [
            each for each in self.calls.assigned(owner, attribute) if isinstance(each, (ast.List, ast.Tuple, ast.Dict))
        ]
        return {
            text for each in values for part in ast.walk(each) if is_attribute(part, "self") and (text := dotted(part))
        }

    def _buffers(self, function: Definition) -> frozenset[str]:
        return registered(self.site.source.text, function.node.lineno)

    def _of_callee(self, callee: Definition, call: ast.Call) -> Effect:
        return super()._of_callee(callee, call)._replace(shares=())

    def _returned_parameters(self, function: Definition) -> set[str]:
        del function
        return set()

    def _in_recursion(self, names: set[str]) -> set[str]:
        del names
        return set()

    def _written_by_method(self, function: Definition, call: ast.Call) -> set[str]:
        return set() if self.calls.callee(function, call) is None else super()._written_by_method(function, call)

    def written_by(self, function: Definition, node: ast.AST) -> set[str]:
        certain = isinstance(node, ast.Call) or self._is_tensor_written(function, node)
        return super().written_by(function, node) if certain else set()

    def _is_tensor_written(self, function: Definition, node: ast.AST) -> bool:
        """False for numbers that are counted up, and for what is put into lists and dicts."""
        if isinstance(node, ast.AugAssign):
            number = _is_counted(node.value) or not isinstance(node.op, _OPERATORS)
            place = isinstance(node.target, ast.Subscript) and not self._is_tensor_written(function, node.target)
            python = self.site.value(node.target).is_python or number or place
            return self._is_tensor(function, node.target) or not python
        if isinstance(node, ast.Subscript):
            place = _is_place(node.slice) or written_integer(node.slice) is not None
            return not place or self._is_tensor(function, node.value) or self.site.value(node.slice).is_tensor
        return True

    def _is_tensor(self, function: Definition, node: ast.expr) -> bool:
        """True for what the dataflow takes for a tensor, and for buffers of the class around a function."""
        held = held_name(node) or ""
        buffer = node.attr if is_attribute(node, "self") else held.removeprefix("self.")
        return self.site.value(node).is_tensor or held == ANY_BUFFER or buffer in self._buffers(function)


def _is_counted(node: ast.expr) -> bool:
    """True for constants, sizes and numbers of elements, and what is computed of these."""
    if isinstance(node, ast.BinOp):
        return _is_counted(node.left) and _is_counted(node.right)
    counted = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
    ranks = isinstance(node, ast.Attribute) and node.attr == "ndim"
    return isinstance(node, ast.Constant) or counted or ranks or is_size(node)


def _is_place(node: ast.expr) -> bool:
    """True for one place of a list, or one key of a dict: a name, a size, a text."""
    if isinstance(node, ast.BinOp):  # `prefix + "weight"`
        return isinstance(node.op, ast.Add) and any(map(_is_text, (node.left, node.right)))
    return isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) or _is_text(node) or is_size(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
