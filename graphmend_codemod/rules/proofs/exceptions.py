"""Exceptions that a guard raises: what they say, and what on the way out may catch them."""

from __future__ import annotations

import ast
import re

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import all_given, last_name, stores_name
from graphmend_codemod.analysis.scope import of_kind, walk_scope
from graphmend_codemod.project.index.facts import OTHERS_ALONE, AttributeKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa]")
_BRACES = re.compile(r"(?<!\{)\{[^{}]*\}")
_PASSES_ON = frozenset(
    """builtins.open contextlib.closing contextlib.nullcontext contextlib.redirect_stderr
    contextlib.redirect_stdout deepspeed.zero.GatheredParameters warnings.catch_warnings""".split()
)
"""Context managers outside of torch that let every exception through."""


def caught(site: Site, *, torch_alone: bool) -> str | None:
    """What may catch what the statement raises: around it, or around a call that leads to its function.

    Where torch alone raises, a handler in another function for exceptions of the project or of a library catches none.
    """
    if site.place.in_try:
        return "`try` around it"
    manager = swallowing(site)
    if manager is not None:
        return f"`with {manager}` around it"
    return caught_above(site, torch_alone=torch_alone)


def caught_above(site: Site, *, torch_alone: bool) -> str | None:
    """What may catch it around a call that leads to the function of a site, or around a step of a generator."""
    scope = site.evaluator.scope
    made = any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in walk_scope(scope.node))
    if made and not any(last_name(each) == "contextmanager" for each in scope.node.decorator_list):
        return f"`{site.function}` is a generator, which raises where its elements are taken"
    found = scope.index.caught(site.summary.path, site.function, scope.node.lineno)
    if found is not None and found.startswith(OTHERS_ALONE):
        return None if torch_alone else found.removeprefix(OTHERS_ALONE)
    return found


def swallowing(site: Site) -> str | None:
    """The source of a context manager around the statement that may catch an exception, None if none may."""
    for parent in site.place.parents:
        for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
            if not _lets_through(site, item.context_expr):
                return site.text(item.context_expr)
    return None


def _lets_through(site: Site, manager: ast.expr) -> bool:
    if isinstance(manager, ast.IfExp):
        return _lets_through(site, manager.body) and _lets_through(site, manager.orelse)
    made = manager.func if isinstance(manager, ast.Call) else manager
    qualified = _manager(site, made)
    if qualified is None:
        return False
    if qualified in _PASSES_ON or qualified.startswith("torch."):
        return True
    index = site.evaluator.scope.index
    function = index.function(qualified)
    if function is not None:
        generator = any(each.rpartition(".")[2] == "contextmanager" for each in function.decorators)
        return generator and not function.swallows
    owner = index.class_facts(qualified)
    method = owner.methods.get("__exit__") if owner is not None else None
    leave = index.function(method) if method is not None else None
    return leave is not None and not leave.swallows


def _manager(site: Site, node: ast.expr) -> str | None:
    """The function or class that makes a context manager."""
    value = site.value(node)
    found = value.callee or value.instance_of or site.resolve(node)
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if found is None and own and node.value.id == site.evaluator.scope.self_name:  # type: ignore[attr-defined]
        facts = site.evaluator.scope.class_facts
        attribute = site.evaluator.scope.attribute(node.attr)  # type: ignore[attr-defined]
        if attribute is not None:
            return attribute.callee if attribute.kind is AttributeKind.CALL else None
        return facts.methods.get(node.attr) if facts is not None else None  # type: ignore[attr-defined]
    return found


def message_of(site: Site, node: ast.expr | None) -> tuple[str, str | None]:
    """The constant text of a message or an exception, with `...` for what eager mode fills in.

    The second is the name of a constant that is the message already. Raises NotProven where a message is computed
    somewhere else, so that compiled code could not say it.
    """
    if node is None:
        return "assertion failed", None
    if isinstance(node, ast.Call) and _template(node) is None:
        given = all_given(node)
        if not given and _is_class(site, node.func):
            return _last_name(node.func), None
        if not given:
            raise NotProven(f"`{speculation.short(node)}` makes the message; write it as a literal in the `raise`")
        for argument in given:
            found = _constant(site, argument)
            if found is not None:
                return found
        text = speculation.short(given[0])
        raise NotProven(f"the message `{text}` is computed elsewhere; write it as a literal in the `raise`")
    if isinstance(node, (ast.Name, ast.Attribute)) and _is_class(site, node):
        return _last_name(node), None
    if isinstance(node, (ast.Tuple, ast.List)) and node.elts:
        shown = [_shown(each) for each in node.elts]
        return ("assertion failed" if set(shown) == {"..."} else f"({', '.join(shown)})"), None
    found = _constant(site, node)
    if found is None:
        text = speculation.short(node)
        raise NotProven(f"`{text}` is computed elsewhere; write it as a literal in the `raise`")
    return found


def _shown(node: ast.expr) -> str:
    """A value in a message that shows several: `assert a == b, (a, b)`."""
    return repr(node.value) if isinstance(node, ast.Constant) else _template(node) or "..."


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def _is_class(site: Site, node: ast.expr) -> bool:
    """True for an exception that is raised by its class: `raise NotImplementedError`."""
    qualified = site.resolve(node)
    if qualified is None:
        return False
    return qualified.startswith("builtins.") or qualified.rpartition(".")[2][:1].isupper()


def _constant(site: Site, node: ast.expr) -> tuple[str, str | None] | None:
    text = _template(node)
    if text is not None:
        return text, None
    if not isinstance(node, ast.Name):
        return None
    if site.evaluator.scope.is_local(node.id):
        assigned = _only_value(site, node.id)
        text = _template(assigned) if assigned is not None else None
        return None if text is None else (text, node.id if isinstance(assigned, ast.Constant) else None)
    fact = site.evaluator.scope.index.global_fact(site.evaluator.scope.module, node.id)
    if fact is None or fact.kind is not AttributeKind.CONSTANT or fact.text[:1] not in {"'", '"'}:
        return None
    return "", node.id


def _only_value(site: Site, name: str) -> ast.expr | None:
    """What the function assigns to a local name, if it does so once, at the level of the statement or around it."""
    stores = [each for each in walk_scope(site.evaluator.scope.node) if stores_name(each, name)]
    if len(stores) != 1:
        return None
    return next((each.value for each in of_kind(site.place.above(), ast.Assign) if each.targets == stores), None)


def _template(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        text = _template(node.left)
        return None if text is None else _PERCENT.sub("...", text).replace("%%", "%")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _template(node.left), _template(node.right)
        if left is None and right is None:
            return None
        return ("..." if left is None else left) + ("..." if right is None else right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        text = _template(node.func.value)
        return None if text is None else _BRACES.sub("...", text).replace("{{", "{").replace("}}", "}")
    return None


def _piece(node: ast.expr) -> str:
    if isinstance(node, ast.FormattedValue):
        return "..."
    return str(node.value) if isinstance(node, ast.Constant) else ""
