"""Whether a name's value can still be read after a statement."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from functools import lru_cache

from graphmend_codemod.analysis.patterns import asks_for_compiler, own_variables, stored_names
from graphmend_codemod.analysis.program_points import ProgramPoint
from graphmend_codemod.analysis.scope import SCOPES, dotted, parameter_names, walk, walk_scope


class Use(enum.Enum):
    """What a piece of code does first with a name."""

    READ = "read"
    WRITTEN = "written"  # on every path, or the path ends
    NEITHER = "neither"


_MODES = frozenset({"no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast", "nullcontext"})
_SEES_LOCALS = frozenset({"locals", "vars", "eval", "exec"})


def live_after(place: ProgramPoint, name: str) -> bool:
    """True when the value that `name` has after `place.statement` may be read."""
    if is_seen_elsewhere(place.blocks[0][0], name) or _is_read_by_handlers(place, name):
        return True
    for depth in range(len(place.blocks) - 1, -1, -1):
        body, position = place.blocks[depth]
        rest = body[position + 1 :]
        use = _block(rest, name)
        if use is Use.READ or (use is Use.WRITTEN and not any(map(_leaves, rest))):
            return use is Use.READ
        if depth == 0:
            break
        outer_body, outer_position = place.blocks[depth - 1]
        parent = outer_body[outer_position]
        if isinstance(parent, ast.For) and body is parent.body:
            if _loop(parent, name) is Use.READ:
                return True
        elif isinstance(parent, (ast.AsyncFor, ast.While)) and body is parent.body:
            if _reads(parent, name):
                return True
        elif isinstance(parent, ast.Try) and _reads(parent, name):
            return True
    return False


def is_seen_elsewhere(body: Sequence[ast.stmt], name: str) -> bool:
    """True where more than the statements of a function may read its local: a function inside, or who sees all."""
    for part in _lasting(body):
        if isinstance(part, SCOPES) and _reads_free(part, name):
            return True
        if isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names:
            return True
        if isinstance(part, ast.Name):
            return True
        if isinstance(part, (ast.Assign, ast.Return)) and _reads(part, name):
            return True
    return False


_LASTING = "graphmend_lasting"
"""Where the first statement of a function keeps what may read locals later: names are asked for one by one."""


def _lasting(body: Sequence[ast.stmt]) -> Sequence[ast.AST]:
    """The parts of a function's body that may read its locals when other statements run, or read all of them."""
    known: list[ast.AST] | None = body[0].__dict__.get(_LASTING)
    if known is None:
        known = body[0].__dict__[_LASTING] = [part for each in body for part in walk(each) if _is_lasting(part)]
    return known


def _is_lasting(part: ast.AST) -> bool:
    if isinstance(part, ast.Name):
        return part.id in _SEES_LOCALS
    if isinstance(part, (ast.Assign, ast.Return)):
        return isinstance(part.value, ast.GeneratorExp)
    return isinstance(part, (*SCOPES, ast.Global, ast.Nonlocal))


def _reads_free(scope: ast.AST, name: str) -> bool:
    """True where a function, a lambda or a class reads a name of what is around it."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        own = parameter_names(scope)
        own |= {part.id for part in walk_scope(scope) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        if name in own:
            return False
    return _reads(scope, name)


def _is_read_by_handlers(place: ProgramPoint, name: str) -> bool:
    """True where a `try` around the place reads the name once its block is left, however that happens."""
    for (body, position), (inner, _) in zip(place.blocks, place.blocks[1:], strict=False):
        parent = body[position]
        if isinstance(parent, ast.Try) and inner is not parent.finalbody:
            after = [*parent.handlers, *parent.finalbody]
            if any(_reads(each, name) for each in after):
                return True
    return False


def _leaves(statement: ast.stmt) -> bool:
    """True where a statement may leave the round of the loop that it stands in."""
    if isinstance(statement, (ast.Break, ast.Continue)):
        return True
    if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
        return any(map(_leaves, statement.orelse))
    inner = (
        each
        for each in ast.iter_child_nodes(statement)
        if isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case))
    )
    return not isinstance(statement, SCOPES) and any(_leaves(each) for each in inner)  # type: ignore[arg-type]


def reads_before_writing(body: Sequence[ast.stmt], name: str) -> bool:
    """True when `body` may read the value that `name` has at its start."""
    return _block(body, name) is Use.READ


def _block(body: Sequence[ast.stmt], name: str) -> Use:
    for statement in body:
        use = _statement(statement, name)
        if use is not Use.NEITHER:
            return use
    return Use.NEITHER


def _branches(*uses: Use) -> Use:
    if Use.READ in uses:
        return Use.READ
    return Use.WRITTEN if all(use is Use.WRITTEN for use in uses) else Use.NEITHER


def _statement(node: ast.stmt, name: str) -> Use:
    if isinstance(node, ast.If):
        if _reads(node.test, name):
            return Use.READ
        return _branches(_block(node.body, name), _block(node.orelse, name))
    if isinstance(node, ast.For):
        return _loop(node, name)
    if isinstance(node, (ast.AsyncFor, ast.While, ast.Try, ast.Match)):
        return Use.READ if _reads(node, name) else Use.NEITHER
    if isinstance(node, (ast.With, ast.AsyncWith)):
        read = any(_reads(item, name) for item in node.items)
        use = Use.READ if read else _block(node.body, name)
        # What manages it may swallow an exception that is raised before the name is written.
        return use if use is Use.READ or all(map(_lets_through, node.items)) else Use.NEITHER
    if _reads(node, name):
        return Use.READ
    if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return Use.NEITHER if isinstance(node, (ast.Continue, ast.Break)) else Use.WRITTEN
    if not isinstance(node, ast.Assign):
        return Use.NEITHER
    return Use.WRITTEN if name in _names_bound(node) else Use.NEITHER


def _lets_through(item: ast.withitem) -> bool:
    """True for a manager of a mode of torch, by its name, and where eager mode takes one."""
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    called = called.orelse if isinstance(called, ast.IfExp) and asks_for_compiler(called.test) else called
    if isinstance(called, ast.Attribute) and (dotted(called) or "").endswith(".backends.cudnn.flags"):
        return True
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in _MODES


def _loop(node: ast.For, name: str) -> Use:
    """A loop may run no round, so that it never writes for certain."""
    target = [part.id for part in walk(node.target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    first = _reads(node.iter, name) or _reads(node.target, name)
    in_body = name not in target and _block(node.body, name) is Use.READ
    return Use.READ if first or in_body or _block(node.orelse, name) is Use.READ else Use.NEITHER


def _reads(node: ast.AST, name: str) -> bool:
    return name in _names_read(node)


@lru_cache(maxsize=2048)
def _names_read(node: ast.AST) -> frozenset[str]:
    """The names that a node may read; remembered, as one function is asked about many names."""
    read: set[str] = set()
    own = own_variables(walk(node))
    for part in walk(node):
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Store) and id(part) not in own:
                read.add(part.id)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            read.add(part.target.id)
    return frozenset(read)


@lru_cache(maxsize=2048)
def _names_bound(node: ast.Assign) -> frozenset[str]:
    """The local names that an assignment binds. Cached, like the names that a node reads."""
    own = own_variables(walk(node))
    return frozenset(stored_names(part for part in walk_scope(node) if id(part) not in own))
