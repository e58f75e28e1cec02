"""Numbers in a tensor that are read for nothing but bounds of slices, where it is made or in functions called there.

A call may stop the compiler inside of it, and then runs as it is written. So a number may be handed on only by the
function that makes the tensor, in the statement that chooses between number and tensor.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.scope import children, parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.proofs.calls.unique_callee import SureCalls, beside_compile_paths, is_whole


@dataclass
class Bounds:
    """Follows a tensor of `length` numbers, which `function` binds to `name`, and each of the numbers.

    `uses` are elements of the tensor in that function, or the tensor itself where it is handed on. `slices` are the
    slices that one of the numbers bounds. `reason` is the first use that a Python list, or a Python number, could not
    serve, or that is not understood.
    """

    sure: SureCalls
    function: Definition
    name: str
    length: int
    uses: list[ast.expr] = field(default_factory=list)
    slices: list[ast.Slice] = field(default_factory=list)
    reason: str | None = None
    _seen: set[tuple[Definition, str, bool]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._name(self.function, self.name, stores=1, whole=True)

    def _name(self, function: Definition, name: str, *, stores: int, whole: bool) -> None:
        if (function, name, whole) in self._seen:
            return
        self._seen.add((function, name, whole))
        parents = {id(child): parent for parent in walk(function.node) for child in children(parent)}
        own, handled = {id(node) for node in walk_scope(function.node)}, beside_compile_paths(function.node)
        named = [node for node in walk(function.node) if isinstance(node, ast.Name) and node.id == name]
        bound = [node for node in named if not isinstance(node.ctx, ast.Load)]
        given = name in {each.arg for each in parameters(function.node)}
        if len(bound) != stores or given is bool(stores) or any(id(node) not in own for node in named):
            self._fail(f"`{name}` is bound several times in `{function.qualname}`, or used in a nested function")
            return
        for node in named:
            if isinstance(node.ctx, ast.Load) and id(node) not in handled:
                (self._tensor if whole else self._number)(function, node, parents)
            elif not isinstance(node.ctx, ast.Load) and not isinstance(parents[id(node)], ast.Assign):
                self._fail(f"`{short(parents[id(node)])}` changes `{name}`")

    def _tensor(self, function: Definition, node: ast.expr, parents: dict[int, ast.AST]) -> None:
        parent = parents[id(node)]
        if isinstance(parent, ast.Subscript) and parent.value is node and self._is_inside(parent):
            self._number(function, parent, parents)
        elif not self._handed(function, node, parents, whole=True):
            self._fail(f"`{short(parent)}` in `{function.qualname}` may need a Tensor")

    def _is_inside(self, element: ast.Subscript) -> bool:
        inside = isinstance(element.ctx, ast.Load) and is_whole(element.slice)
        return inside and bool(-self.length <= ast.literal_eval(element.slice) < self.length)

    def _number(self, function: Definition, node: ast.expr, parents: dict[int, ast.AST]) -> None:
        parent = parents[id(node)]
        here = function is self.function
        if isinstance(parent, ast.Slice) and (node is parent.lower or node is parent.upper):
            self.slices.append(parent)
            self.uses += [node] if here else []
        elif not here and isinstance(parent, ast.Assign) and len(parent.targets) == 1 and _is_name(parent.targets[0]):
            self._name(function, ast.unparse(parent.targets[0]), stores=1, whole=False)
        elif not self._handed(function, node, parents, whole=False):
            self._fail(f"`{short(parent)}` in `{function.qualname}` may need a Tensor")

    def _handed(self, function: Definition, node: ast.expr, parents: dict[int, ast.AST], *, whole: bool) -> bool:
        parent = parents[id(node)]
        call = parents[id(parent)] if isinstance(parent, ast.keyword) else parent
        if function is not self.function or not isinstance(call, ast.Call) or node is call.func:
            return False
        reached = self.sure.reached(function, call, node, scripted=True)
        if reached is not None and reached[0] is not function:
            self.uses.append(node)
            self._name(*reached, stores=0, whole=whole)
            return True
        return False

    def _fail(self, reason: str) -> None:
        self.reason = self.reason or reason


def _is_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Name)
