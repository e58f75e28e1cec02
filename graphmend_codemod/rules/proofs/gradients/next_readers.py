"""Whether only layers read a tensor before its variable is reassigned."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_name, mentions, only_target, reads_name, stores_name
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import is_plain

_MAKES = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "zeros_like", "ones_like", "empty_like"})


def is_new(site: Site, name: str) -> bool:
    """True where each value of a local name is an object of its own: a view, a new tensor, what an operator makes."""
    function = site.evaluator.scope.node
    stores = [part for part in walk_scope(function) if stores_name(part, name)]
    before = [part for part in stores if part.lineno < site.place.statement.lineno]
    if any(part.lineno < site.place.statement.lineno for part in _kept(function, name)):
        return False
    given = {
        id(each.targets[0]): each.value
        for each in walk_scope(function)
        if isinstance(each, ast.Assign) and len(each.targets) == 1
    }
    return bool(before) and all(id(part) in given and _makes_new(site, given[id(part)]) for part in before)


def _kept(function: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a local name is read for more than an attribute, or for its own next value: something else may hold it."""
    fine: set[int] = set()
    for part in walk_scope(function):
        if isinstance(part, ast.Attribute):
            fine.add(id(part.value))
        elif isinstance(part, ast.Assign) and _is_result(part, name):
            fine |= {id(each) for each in ast.walk(part.value)}
    for part in walk_scope(function):
        if reads_name(part, name) and id(part) not in fine:
            yield part


def _makes_new(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        views = (isinstance(each, ast.Slice) or getattr(each, "value", 0) in (None, ...) for each in parts)
        return site.value(node.value).is_tensor or any(views)
    if isinstance(node, ast.BinOp):
        return site.value(node).is_tensor
    called = site.resolve(node.func) if isinstance(node, ast.Call) else None
    return called is not None and called.startswith("torch.") and called.removeprefix("torch.") in _MAKES


def conditions_of_next_readers(site: Site, node: ast.stmt, name: str) -> list[str]:
    """Conditions under which what is made of the tensor next requires gradients, and nothing else reads it."""
    found: dict[str, None] = {}
    for body, position in reversed(site.place.blocks):
        if _consumed(site, body[position + 1 :], name, found):
            return list(found)
        around = next((parent for parent in site.place.parents if _holds(parent, body)), None)
        if around is not None and not isinstance(around, (ast.If, ast.FunctionDef)):
            break
    raise NotProven(f"no layer takes `{name}` next; manually set the flag outside of `forward`")


def _holds(parent: ast.AST, body: Sequence[ast.stmt]) -> bool:
    return any(getattr(parent, field, None) is body for field in ("body", "orelse", "finalbody"))


def _consumed(site: Site, statements: Sequence[ast.stmt], name: str, found: dict[str, None]) -> bool:
    """True where the name holds what a layer makes of it behind the statements; conditions are put into `found`."""
    for statement in statements:
        if not mentions(statement, name):
            continue
        if isinstance(statement, ast.For) and (layers := _layers(site, statement, name)) is not None:
            target = statement.target.id if isinstance(statement.target, ast.Name) else ""
            found |= dict.fromkeys(layers)
            if _branch(site, statement.body, name, target, found):
                return True
        if _is_result(statement, name) and (asked := _own_layer(site, statement, name)):
            found |= dict.fromkeys(asked)
            return True
        raise NotProven(f"`{speculation.short(statement)}` reads it; manually set the flag outside of `forward`")
    return False


def _branch(site: Site, body: Sequence[ast.stmt], name: str, layer: str, found: dict[str, None]) -> bool:
    """The same for the body of a loop over layers, and for the arm of a test in it that is taken."""
    for statement in body:
        if not mentions(statement, name):
            continue
        if _is_result(statement, name) and _calls(statement, layer, name):
            return True
        plain = isinstance(statement, ast.If) and is_plain(site, statement.test)
        if isinstance(statement, ast.If) and plain and _branch_quietly(site, statement.orelse, name, layer, found):
            found[f"not ({site.text(statement.test)})"] = None
            return True
        raise NotProven(f"`{speculation.short(statement)}` reads it; manually set the flag outside of `forward`")
    return False


def _branch_quietly(site: Site, body: Sequence[ast.stmt], name: str, layer: str, found: dict[str, None]) -> bool:
    try:
        return _branch(site, body, name, layer, found)
    except NotProven:
        return False


def _is_result(statement: ast.stmt, name: str) -> bool:
    """True for `name = ...`."""
    target = only_target(statement)
    return is_name(target, name)


def _calls(statement: ast.stmt, layer: str, name: str) -> bool:
    """True for `... = layer(name)`."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or not is_name(call.func, layer):
        return False
    return _takes_once(call, name)


def _takes_once(call: ast.Call, name: str) -> bool:
    reads = [part for part in ast.walk(call) if is_name(part, name)]
    return len(reads) == 1 and any(part is reads[0] for part in call.args[:1])


def _layers(site: Site, loop: ast.For, name: str) -> list[str] | None:
    """Conditions for `for layer in self.layers`."""
    return list(_trained(site, loop.iter)) if _is_own(site, loop.iter) and not loop.orelse else None


def _own_layer(site: Site, statement: ast.stmt, name: str) -> list[str]:
    """Conditions for `name = self.layer(name)`."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or not _is_own(site, call.func) or not _takes_once(call, name):
        return []
    return list(_trained(site, call.func))


def _is_own(site: Site, node: ast.expr) -> bool:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return own and node.value.id == site.evaluator.scope.self_name  # type: ignore[attr-defined]


def _trained(site: Site, layers: ast.expr) -> Iterator[str]:
    text = site.text(layers)
    yield f"isinstance({text}, {site.torch}.nn.Module)"
    yield f"{{each.requires_grad for each in {text}.parameters()}} == {{True}}"
