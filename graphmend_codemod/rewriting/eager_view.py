"""Proof that a fix does not change eager mode: both texts with compile paths folded away must be equal.

Outside of torch.compile, `torch.compiler.is_compiling()` is False. With that put in its place, every compile path
falls away, and what is left must be the tree from before the fix. That depends on nothing that the analysis believes
about the code. Additions that eager mode cannot notice are let through: imports, functions and methods of a name that
the file does not have, parameters of such a name with a constant default, and such names bound to constants and sizes.
Where a new function is called with names that are its parameters' own, its body is read in the place of the call.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cached_property

_PREDICATE = re.compile(r"is_((torch)?dynamo_)?compiling|_is_torch_(\d+_\d+_(dynamo_)?)?compiling")
_PLAIN = (ast.Constant, ast.Name, ast.Subscript, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)


def same_in_eager_mode(
    before: Sequence[ast.stmt], after: Sequence[ast.stmt], module: ast.Module, origin: str | None = None
) -> bool:
    """True when eager mode runs the statements `before`, which are of `module`, where it is given those `after`.

    `origin` is the project's module of helpers as the file spells it: more names may be imported from there.
    """
    folded = _folded_body(after)
    return _Comparison(module, folded, origin).statements(_folded_body(before), folded)


class _Comparison:
    def __init__(self, module: ast.Module, after: Sequence[ast.stmt], origin: str | None) -> None:
        self._module = module
        self._origin = origin
        self._functions = {node.name: node for node in after if isinstance(node, ast.FunctionDef)}
        self._locals: set[str] = set()

    @cached_property
    def _names(self) -> set[str]:
        """Every name and attribute that the module has."""
        found: set[str] = set()
        for node in ast.walk(self._module):
            for part in ("id", "attr", "arg", "name", "asname"):
                if isinstance(word := getattr(node, part, None), str):
                    found.add(word)
        return found

    def statements(self, old: Sequence[ast.AST], new: Sequence[ast.AST]) -> bool:
        """True when `new` is `old` with additions that eager mode cannot notice."""
        position = 0
        waiting = list(reversed(new))
        while waiting:
            statement = waiting.pop()
            if position < len(old) and self._node(old[position], statement):
                position += 1
            elif (moved := self._moved(statement)) is not None:
                waiting += reversed(moved)
            elif not self._is_addition(statement):
                return False
        return position == len(old)

    def _moved(self, node: ast.AST) -> list[ast.stmt] | None:
        """The statements of a new function that is called here with its parameters' own names, if this calls one."""
        call = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
            return None
        function = self._functions.get(call.func.id)
        if function is None or function.name in self._names or function.decorator_list:
            return None
        given = [each.id for each in call.args if isinstance(each, ast.Name)]
        if len(given) != len(call.args) or given != _only_parameters(function):
            return None
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if isinstance(node, ast.Assign):
            last = body[-1].value if isinstance(body[-1], ast.Return) else None
            if len(node.targets) != 1 or last is None or ast.unparse(node.targets[0]) != ast.unparse(last):
                return None
            body = body[:-1]
        return body if self._means_the_same_outside(body, given) else None

    def _means_the_same_outside(self, body: Sequence[ast.stmt], parameters: Sequence[str]) -> bool:
        """True where statements of a function mean the same at the top of the module, given these names."""
        nodes = [node for statement in body for node in ast.walk(statement)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        stored = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        free = {node.id for node in names} - stored - set(parameters)
        leaves = any(isinstance(node, (ast.Return, ast.Global, ast.Nonlocal)) for node in nodes)
        return not leaves and free.isdisjoint(self._locals | {"super", "__class__", "locals"})

    def _node(self, old: object, new: object) -> bool:
        if not (isinstance(old, ast.AST) and isinstance(new, ast.AST)):
            return type(old) is type(new) and old == new
        if type(old) is not type(new):
            return False
        if isinstance(old, ast.ImportFrom) and isinstance(new, ast.ImportFrom) and self._is_of_origin(new):
            kept = [each for each in new.names if not self._is_new(each)]
            new = ast.ImportFrom(new.module, kept, new.level)
        if isinstance(old, ast.arguments) and isinstance(new, ast.arguments):
            new = self._without_new_parameters(old, new)
        around = self._locals
        if isinstance(old, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            self._locals = around | _bound_names(old)
        same = all(self._field(getattr(old, name, None), getattr(new, name, None)) for name in old._fields)
        self._locals = around
        return same

    def _field(self, old: object, new: object) -> bool:
        if not (isinstance(old, list) and isinstance(new, list)):
            return self._node(old, new)
        if any(isinstance(each, ast.stmt) for each in (*old, *new)):
            return self.statements(old, new)
        return len(old) == len(new) and all(map(self._node, old, new))

    def _without_new_parameters(self, old: ast.arguments, new: ast.arguments) -> ast.arguments:
        count = len(new.args) - len(old.args)
        added, defaults = new.args[len(old.args) :], new.defaults[len(new.defaults) - count :] if count > 0 else []
        if len(defaults) != len(added) or not all(isinstance(each, ast.Constant) for each in defaults):
            return new
        if any(each.arg in self._names for each in added):
            return new
        fields = dict(ast.iter_fields(new))
        fields |= {"args": new.args[: len(old.args)], "defaults": new.defaults[: len(new.defaults) - len(defaults)]}
        return ast.arguments(**fields)

    def _is_addition(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Import):
            return True
        if isinstance(node, ast.ImportFrom):
            return self._is_of_origin(node) and all(map(self._is_new, node.names))
        if isinstance(node, ast.FunctionDef):
            return node.name not in self._names
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return False
        return node.targets[0].id not in self._names and all(map(_is_plain, ast.walk(node.value)))

    def _is_of_origin(self, node: ast.ImportFrom) -> bool:
        return "." * node.level + (node.module or "") == self._origin

    def _is_new(self, alias: ast.alias) -> bool:
        return alias.asname is None and alias.name not in self._names


def _only_parameters(function: ast.FunctionDef) -> list[str] | None:
    """The names of a function's parameters; None where it has others than plain ones."""
    given = function.args
    if given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or given.defaults:
        return None
    return [each.arg for each in given.args]


def _bound_names(function: ast.AST) -> set[str]:
    return {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(function)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    }


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in {"shape", "size"}
    return isinstance(node, _PLAIN) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    )


def _folded_body(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in body:
        folded = _Fold().visit(statement)
        found += folded if isinstance(folded, list) else [folded]
    return found


class _Fold(ast.NodeTransformer):
    """Replaces tests for the compiler by False, and what they decide by what eager mode runs; makes new nodes."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        fields = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                parts: list[object] = []
                for each in value:
                    made = self.visit(each) if isinstance(each, ast.AST) else each
                    parts += made if isinstance(made, list) else [made]
                fields[name] = parts
            else:
                fields[name] = self.visit(value) if isinstance(value, ast.AST) else value
        return type(node)(**fields)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`torch.compiler.is_compiling()` is False."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if _PREDICATE.fullmatch(name) and not node.args and not node.keywords:
            return ast.Constant(False)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not False` is True."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(operand, ast.Constant) and isinstance(operand.value, bool):
            return ast.Constant(not operand.value)
        return ast.UnaryOp(node.op, operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`False and x` is False, `False or x` is x."""
        ends = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for each in node.values:
            value = self.visit(each)
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                if value.value is not ends:
                    continue
                kept.append(value)
                break
            kept.append(value)
        if not kept:
            return ast.Constant(not ends)
        return kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The value that eager mode takes."""
        test = self.visit(node.test)
        if isinstance(test, ast.Constant) and isinstance(test.value, bool):
            taken: ast.AST = self.visit(node.body if test.value else node.orelse)
            return taken
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """The branch that eager mode takes."""
        test = self.visit(node.test)
        if isinstance(test, ast.Constant) and isinstance(test.value, bool):
            return _folded_body(node.body if test.value else node.orelse)
        return ast.If(test, _folded_body(node.body) or [ast.Pass()], _folded_body(node.orelse))
