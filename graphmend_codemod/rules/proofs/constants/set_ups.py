"""Calls that set a module up once, which torch.compile can do while it traces: `install_hooks(self)`.

The function leaves at once where a flag of the module is set, and sets that flag, itself or in a function that it
calls. So whoever calls it first sets the module up, and calls after that do nothing: that compiled code finds it done
makes no difference. Dynamo breaks the graph where such a function registers hooks or enters a lock. A helper that is
marked as constant is run by Dynamo itself, with the module, while it traces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, calls_in
from graphmend_codemod.analysis.patterns import is_literal, is_name, written_text
from graphmend_codemod.analysis.scope import FunctionNode, body_of, dotted, parameters, walk, walk_scope
from graphmend_codemod.analysis.value_flow import run_by
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import CONSTANT, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.logging.log_guard import predicate
from graphmend_codemod.rules.proofs.untraced.other_files import function_of

_DEEP = 4
_BY_NAME = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_COMMENT = "# What sets the module up once does so while torch.compile traces."


class SetUp(NamedTuple):
    """A call that sets its only argument up, unless its `flag` says that this is done.

    `givers` are the parameters through which it sets its flag. The attributes that it sets and reads stand beside.
    """

    call: ast.Call
    name: str
    flag: str = ""
    givers: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()


def set_up(site: Site, statement: ast.Expr) -> SetUp | None:
    """`install_hooks(self)`, where Dynamo does not trace what the function does."""
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords or len(call.args) != 1:
        return None
    qualified = site.resolve(call.func) if isinstance(call.args[0], ast.Name) else None
    known = qualified is not None and site.evaluator.scope.index.function(qualified) is not None
    found = function_of(site, qualified) if known and qualified is not None else None
    if found is None or (flag := _flag_of(found[2])) is None:
        return None
    _, calls, function = found
    reached = list(run_by(calls, function, follows=_is_by_name, nested=False, deepest=_DEEP))
    sets = any(_sets(part, flag, each.node) for each in reached for part in walk_scope(each.node))
    untraced = any(_is_untraced(part) for each in reached for part in walk_scope(each.node))
    if not sets or not untraced:
        return None
    touched = [each for inner in reached for part in walk(inner.node) for each in _attributes(part)]
    stored = frozenset(name for name, is_set in touched if is_set)
    givers = frozenset(each.arg for inner in reached for each in parameters(inner.node))
    read = frozenset(name for name, is_set in touched if not is_set)
    return SetUp(call, call.func.id, flag, givers, stored, read)


def _is_by_name(call: ast.Call) -> bool:
    """True for a call of a name: of a function, not of a method."""
    return isinstance(call.func, ast.Name)


def edit(site: Site, statement: ast.Expr, found: SetUp) -> Edit:
    """The helper in the place of the call while torch.compile traces. NotProven where none can stand in the file."""
    if site.evaluator.scope.is_local(found.name) or site.scripted:
        raise NotProven(f"`{found.name}` means something else outside of this function")
    asked = predicate(site)
    if asked is None:
        raise NotProven("the name `torch` means something else here")
    _demand_untouched(site, statement, found)
    _demand_kept(site, found)
    name = site.free_name(f"_{found.name.strip('_')}_while_tracing")
    source = (
        f"@{CONSTANT.name}\n"
        f"def {name}(module):\n"
        f'    """`{found.name}`, which torch.compile calls itself while it traces."""\n'
        f"    {found.name}(module)"
    )
    lines = [_COMMENT, f"{name}({site.text(found.call.args[0])})"]
    helpers = (*asked.helpers, CONSTANT, Helper(name, source, since="compiler.assume_constant_result"))
    return two_paths(site, statement, [asked.text], lines, imports=asked.imports, helpers=helpers)


def _demand_untouched(site: Site, statement: ast.Expr, found: SetUp) -> None:
    """NotProven where the function reads above what is set up, or changes above what that reads.

    While tracing, what was read above is from before, and what was assigned there is not on the module yet.
    """
    scope = site.evaluator.scope.node
    loops = [each for each in site.place.parents if isinstance(each, (ast.For, ast.AsyncFor, ast.While))]
    for part in walk_scope(scope):
        line = getattr(part, "lineno", 0)
        again = any(each.lineno <= line <= (each.end_lineno or 0) for each in loops)
        if line >= statement.lineno and not again:
            continue
        for name, is_set in _attributes(part):
            if name in found.sets or (is_set and name in found.reads):
                raise NotProven(f"`{name}` is used above it, and `{found.name}` changes or reads it; call it first")


def _demand_kept(site: Site, found: SetUp) -> None:
    """NotProven where anything else sets the flag: eager mode sets the module up again then, and no guard asks."""
    reason = f"{{}} may have `{found.name}` set it up again; manually call it before the model is compiled"
    for each in calls_in(site.source.text).definitions.values():
        for part in walk_scope(each.node) if each.node.name != "__init__" else ():
            sets = isinstance(part, ast.Attribute) and part.attr == found.flag and not isinstance(part.ctx, ast.Load)
            if sets and (dotted(part.value) or "") not in found.givers:  # type: ignore[attr-defined]
                raise NotProven(reason.format(f"`{site.text(part)}`"))
    for path, write in site.evaluator.scope.index.writers(found.flag):
        if write.receiver not in found.givers:
            raise NotProven(reason.format(f"`{write.receiver}.{found.flag}` in {path}"))


def _attributes(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The attributes that a node reads or sets, by their names; True for what it sets."""
    if isinstance(node, ast.Attribute):
        yield node.attr, not isinstance(node.ctx, ast.Load)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
        names = (written_text(each) for each in node.args[1:2])
        yield from ((name, node.func.id in {"setattr", "delattr"}) for name in names if name is not None)


def _flag_of(function: Definition) -> str | None:
    """The attribute of its only parameter that a function asks for first, to leave where it is set."""
    node = function.node
    given = [each.arg for each in parameters(node)]
    if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list or len(given) != 1 or function.owner:
        return None
    if any(isinstance(each, ast.Return) and each.value is not None for each in walk_scope(node)):
        return None
    first = body_of(node)[0]
    leaves = isinstance(first, ast.If) and len(first.body) == 1 and isinstance(first.body[0], ast.Return)
    return _asked(first.test, given[0]) if leaves and not first.orelse else None  # type: ignore[attr-defined]


def _asked(test: ast.expr, name: str) -> str | None:
    """`ready` for `x.ready` and for `getattr(x, "ready", False)`."""
    if isinstance(test, ast.Attribute):
        return test.attr if is_name(test.value, name) else None
    if not isinstance(test, ast.Call) or not is_name(test.func, "getattr") or len(test.args) != 3:
        return None
    owner, attribute, default = test.args
    plain = is_name(owner, name) and isinstance(default, ast.Constant) and not default.value
    return written_text(attribute) if plain else None


def _sets(node: ast.AST, flag: str, function: FunctionNode) -> bool:
    """True for `x.ready = True` and `setattr(x, "ready", True)` of what the function is given."""
    owners: list[ast.expr] = []
    if isinstance(node, ast.Call) and is_name(node.func, "setattr") and len(node.args) == 3:
        owners = [node.args[0]] if is_literal(node.args[1], flag) and is_literal(node.args[2], True) else []
    elif isinstance(node, ast.Assign) and is_literal(node.value, True):
        owners = [each.value for each in node.targets if isinstance(each, ast.Attribute) and each.attr == flag]
    given = {each.arg for each in parameters(function)}
    return any(isinstance(each, ast.Name) and each.id in given for each in owners)


def _is_untraced(node: ast.AST) -> bool:
    """True for a hook that is registered, and for a lock that is entered."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.startswith("register_") and node.func.attr.endswith("_hook")
    entered = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    return any(isinstance(each, (ast.Name, ast.Attribute)) for each in entered)
