"""What runs only where several processes work together: `torch.distributed.is_initialized()` decides it.

Dynamo answers that call while it traces, so a compile path can ask for it, and leave the rest out of its proof.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis.patterns import is_attribute, is_not, names_bound, stored_names
from graphmend_codemod.analysis.scope import FunctionNode, dotted, walk, walk_scope
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.other_files import function_of

ASKED = "not ({0}.distributed.is_available() and {0}.distributed.is_initialized())"
"""Whether this is the only process, as a condition; `{0}` is how the file spells `torch`."""
_DEEP = 4
_UNKNOWN = object()


def idle_nodes(site: Site, function: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function that do not run, or do nothing, where there is one process."""
    scope = site.evaluator.scope
    alone = _Alone(site)
    body = function.body
    inner = stored_names(walk_scope(function))
    inner |= {each.arg for each in walk(function.args) if isinstance(each, ast.arg)}
    for statement in _skipped(alone, scope.module, body, inner):
        yield from walk(statement)
    for node in (part for each in body for part in walk(each)):
        if isinstance(node, ast.Call) and alone.is_idle(scope.module, node, inner):
            yield node
            yield from (each for each in node.args if _lists_own(site, each))


def value_alone(site: Site, node: ast.expr) -> int | None:
    """The integer that an expression is where there is one process: 1 for `get_world_size()`; None if unknown."""
    found = _Alone(site).value(site.evaluator.scope.module, node, {*site.evaluator.scope.locals})
    return found if type(found) is int else None


def _lists_own(site: Site, node: ast.expr) -> bool:
    """True for `self.buffers()`, which does nothing as long as nobody iterates over it."""
    facts = site.evaluator.scope.class_facts
    named = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else None
    return (
        is_attribute(named, site.evaluator.scope.self_name)
        and named.attr in {"buffers", "named_buffers", "parameters", "named_parameters"}
        and facts is not None
        and facts.is_module
        and named.attr not in facts.methods
    )


def _skipped(alone: _Alone, module: str, body: Sequence[ast.stmt], local: set[str]) -> Iterator[ast.stmt]:
    """The statements of a block, at any depth, that one process skips."""
    for position, statement in enumerate(body):
        if isinstance(statement, ast.If):
            truth = alone.value(module, statement.test, local)
            if truth is not _UNKNOWN:
                yield from statement.orelse if truth else statement.body
                taken = statement.body if truth else statement.orelse
                yield from _skipped(alone, module, taken, local)
                if taken and isinstance(taken[-1], (ast.Return, ast.Raise)):
                    yield from body[position + 1 :]
                    return
                continue
        for name in ("body", "orelse", "finalbody"):
            yield from _skipped(alone, module, getattr(statement, name, ()), local)


class _Alone:
    """What expressions are, and calls do, in a program of one process."""

    def __init__(self, site: Site) -> None:
        self._site, self._index = site, site.evaluator.scope.index

    def is_idle(self, module: str, call: ast.Call, local: set[str]) -> bool:
        """True for a call of a function of the project that returns before it does anything."""
        name = dotted(call.func)
        if name is None or name.partition(".")[0] in local:
            return False
        return self._returned(self._index.resolve(module, name), 0) is not _UNKNOWN

    def value(self, module: str, node: ast.expr, local: set[str], depth: int = 0) -> object:
        """What an expression is, or that it is unknown."""
        if isinstance(node, ast.Constant):
            return node.value
        if is_not(node):
            inner = self.value(module, node.operand, local, depth)
            return inner if inner is _UNKNOWN else not inner
        if isinstance(node, ast.BoolOp):
            return self._joined(module, node, local, depth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sides = [self.value(module, each, local, depth) for each in (node.left, node.comparators[0])]
            return _compared(node.ops[0], *sides)
        name = dotted(node.func) if isinstance(node, ast.Call) and not node.args and not node.keywords else None
        if name is None or name.partition(".")[0] in local:
            return _UNKNOWN
        qualified = self._index.resolve(module, name)
        if qualified in {"torch.distributed.is_initialized", "torch.distributed.distributed_c10d.is_initialized"}:
            return False
        return self._returned(qualified, depth)

    def _joined(self, module: str, node: ast.BoolOp, local: set[str], depth: int) -> object:
        """`and` and `or`: one operand decides, where those in front of it only ask."""
        decides = isinstance(node.op, ast.Or)
        for each in node.values:
            found = self.value(module, each, local, depth)
            if found is not _UNKNOWN and bool(found) is decides:
                return decides
            if found is _UNKNOWN and not self._only_asks(module, each, local):
                return _UNKNOWN
        return _UNKNOWN

    def _only_asks(self, module: str, node: ast.expr, local: set[str]) -> bool:
        """True for a name or an attribute, and for whether there are several processes at all."""
        node = node.operand if is_not(node) else node
        if isinstance(node, ast.Call) and not node.args and (name := dotted(node.func)) is not None:
            return name.partition(".")[0] not in local and self._index.resolve(module, name) == (
                "torch.distributed.is_available"
            )
        return isinstance(node, ast.Name)

    def _returned(self, qualified: str | None, depth: int) -> object:
        """What a plain function of the project returns before it does anything else; unknown where it may do more."""
        found = self._defined(qualified) if qualified is not None and depth < _DEEP else None
        if found is None:
            return _UNKNOWN
        module, node = found
        local = {each.arg for each in walk(node.args) if isinstance(each, ast.arg)}
        local |= names_bound(node)
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in walk_scope(node)):
            return _UNKNOWN
        return self._of_block(module, node.body, local, depth + 1)

    def _defined(self, qualified: str) -> tuple[str, FunctionNode] | None:
        """The module and the code of a plain function of the project that nothing replaces."""
        module, _, name = qualified.rpartition(".")
        if self._index.function(qualified) is None:
            return None
        own = module == self._site.evaluator.scope.module
        if not self._site.summary.binds_only(name, ("function",)) if own else self._index.writers(name):
            return None  # `writers` reads the whole project
        found = function_of(self._site, qualified)
        if found is None:
            return None
        module, calls, function = found
        plain = not function.owner and not function.node.decorator_list and len(calls.named(function.qualname)) == 1
        return (module, function.node) if plain and isinstance(function.node, ast.FunctionDef) else None

    def _of_block(self, module: str, body: Sequence[ast.stmt], local: set[str], depth: int) -> object:
        for position, statement in enumerate(body):
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue  # a docstring
            if isinstance(statement, ast.Return):
                return None if statement.value is None else self.value(module, statement.value, local, depth)
            if not isinstance(statement, ast.If):
                return _UNKNOWN
            ways = [[*each, *body[position + 1 :]] for each in (statement.body, statement.orelse)]
            truth = self.value(module, statement.test, local, depth)
            if truth is not _UNKNOWN:
                return self._of_block(module, ways[not truth], local, depth)
            # Behind a branch that ends the function each statement is looked at once.
            ends = bool(statement.body) and isinstance(statement.body[-1], ast.Return)
            if not ends or not self._only_asks(module, statement.test, local):
                return _UNKNOWN
            one, other = (self._of_block(module, each, local, depth) for each in ways)
            return one if type(one) is type(other) and one == other else _UNKNOWN
        return None


def _compared(operator: ast.cmpop, left: object, right: object) -> object:
    """A comparison of two whole numbers."""
    if type(left) is not int or type(right) is not int:
        return _UNKNOWN
    answers = {ast.Gt: left > right, ast.GtE: left >= right, ast.Lt: left < right, ast.LtE: left <= right}
    answers |= {ast.Eq: left == right, ast.NotEq: left != right}
    return answers.get(type(operator), _UNKNOWN)
