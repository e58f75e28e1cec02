"""Which names a module binds, where, and whether code at some place sees them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from graphmend_codemod.rewriting.blocks import CodeBlocks, blocks
from graphmend_codemod.rewriting.text import RewriteError

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, eq=False)
class Binding:
    """One statement at module level that binds a name. `top` is the index of the top-level statement it is in.

    `module` is the dotted name that `import` makes reachable by this binding, else None.
    """

    name: str
    top: int
    node: ast.AST
    module: str | None = None


def type_checking(node: ast.AST) -> bool:
    """True for `if TYPE_CHECKING:`, however it is spelled."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def has_import(node: ast.AST) -> bool:
    """True for an import and for a statement of module level with an import in one of its blocks."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, _DEFINITIONS):
        return False
    return any(has_import(inner) for _, block in blocks(node) for inner in block)


def has_definition(node: ast.AST) -> bool:
    """True for a function or class and for a statement of module level with one in one of its blocks."""
    return isinstance(node, _DEFINITIONS) or any(has_definition(inner) for _, block in blocks(node) for inner in block)


@dataclass(frozen=True, eq=False)
class ModuleNames:
    """The names of one module."""

    blocks: CodeBlocks

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What the module binds when it is imported, in order; nothing under `if TYPE_CHECKING`."""
        found: list[Binding] = []
        for top, node in enumerate(self.blocks.tree.body):
            found.extend(_bindings(node, top))
        return tuple(found)

    def bound(self, name: str) -> list[Binding]:
        """The bindings of a name."""
        return [binding for binding in self.bindings if binding.name == name]

    def conditional(self, binding: Binding) -> bool:
        """True if the statement that binds is inside of another."""
        return self.blocks.tree.body[binding.top] is not binding.node

    def needs_import(self, dotted: str) -> bool:
        """True if `import dotted` is missing. RewriteError if its first name means something else here."""
        root = dotted.partition(".")[0]
        found = self.bound(root)
        if any(f"{binding.module}.".startswith(f"{dotted}.") for binding in found if binding.module):
            return False
        if found and not any(binding.module for binding in found):
            line = getattr(found[0].node, "lineno", 1)
            raise RewriteError(f"`{root}` is bound to something other than the module at line {line}")
        return True

    def free(self, name: str) -> bool:
        """True if no code of the file, in any scope, uses a name for anything."""
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        if not word.search(self.blocks.layout.source.text):
            return True
        kinds = (ast.Name, ast.arg, ast.alias, ast.ExceptHandler, *_DEFINITIONS)
        used = (node for node in ast.walk(self.blocks.tree) if isinstance(node, kinds))
        spelled = (getattr(node, field, None) for node in used for field in ("id", "arg", "name", "asname"))
        return name not in spelled

    def shadowed(self, name: str, at: int) -> str | None:
        """The name of a function around offset `at` that binds `name` itself; None if `at` sees the module's."""
        found = None
        for scope in self._scopes(at):
            if isinstance(scope, ast.ClassDef):
                continue
            declared = [node for node in ast.walk(scope) if isinstance(node, ast.Global) and name in node.names]
            if declared:
                found = None
            elif name in _parameters(scope) or any(
                binding.name == name for node in scope.body for binding in _bindings(node, 0, at_runtime=False)
            ):
                found = scope.name
        return found

    def imported_locally(self, dotted: str, at: int) -> bool:
        """True if a function around offset `at` runs `import dotted` in its own block before."""
        return any(
            isinstance(node, ast.Import)
            and self.blocks.end(node) <= at
            and any(alias.asname is None and f"{alias.name}.".startswith(f"{dotted}.") for alias in node.names)
            for scope in self._scopes(at)
            if not isinstance(scope, ast.ClassDef)
            for node in scope.body
        )

    def _scopes(self, at: int) -> Iterator[_Definition]:
        """Functions and classes around an offset, outermost first."""
        block: list[ast.stmt] = self.blocks.tree.body
        while block:
            node = next((node for node in block if self.blocks.start(node) <= at < self.blocks.end(node)), None)
            if node is None:
                return
            if isinstance(node, _DEFINITIONS) and at >= self.blocks.start(node.body[0]):
                yield node
            block = [inner for _, nested in blocks(node) for inner in nested]


def _parameters(scope: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}


def _bindings(node: ast.AST, top: int, *, at_runtime: bool = True) -> Iterator[Binding]:
    """What a statement binds in its own scope; `at_runtime` leaves out what is under `if TYPE_CHECKING`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is None:
                yield Binding(alias.name.partition(".")[0], top, node, alias.name)
            else:
                yield Binding(alias.asname, top, node, alias.name if alias.asname == alias.name else None)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield Binding(alias.asname or alias.name, top, node)
    elif isinstance(node, _DEFINITIONS):
        yield Binding(node.name, top, node)
    else:
        yield from _assigned(node, top)
        for owner, block in blocks(node):
            if isinstance(owner, ast.ExceptHandler) and owner.name:
                yield Binding(owner.name, top, owner)
            if not (at_runtime and type_checking(node) and block is getattr(node, "body", None)):
                for inner in block:
                    yield from _bindings(inner, top, at_runtime=at_runtime)


def _assigned(node: ast.AST, top: int) -> Iterator[Binding]:
    """Names that a statement stores outside of its blocks; the targets of comprehensions are theirs alone."""
    waiting = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    while waiting:
        child = waiting.pop()
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store | ast.Del):
            yield Binding(child.id, top, node)
        if isinstance(child, ast.MatchAs | ast.MatchStar) and child.name:
            yield Binding(child.name, top, node)
        if isinstance(child, ast.MatchMapping) and child.rest:
            yield Binding(child.rest, top, node)
        if isinstance(child, ast.comprehension):
            waiting.extend([child.iter, *child.ifs])
        elif isinstance(child, ast.match_case):
            waiting.extend([child.pattern, *([child.guard] if child.guard else [])])
        elif not isinstance(child, ast.Lambda | ast.ExceptHandler):
            waiting.extend(ast.iter_child_nodes(child))
