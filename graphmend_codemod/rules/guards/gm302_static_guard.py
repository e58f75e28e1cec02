"""static-guard (GM302): a check of a tensor built from a Python list, which can be checked instead.

The tensor's values are those of the list, so under `torch.compile` the same number comes from the list: Dynamo folds
the check, and the exception keeps its type and message. A list that is an argument may hold other numbers, which become
integers as they do in the tensor. Eager mode evaluates the original expression. Both may be
parameters: then every call in the module has to give the list and the tensor that was built from it.

`assert parts, "none given"` is a check of a list as well: Dynamo makes `torch._assert` of it, which takes no list of
tensors or modules. Under `torch.compile` the truth of the list itself is asserted.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import stores_name
from graphmend_codemod.analysis.scope import of_kind, walk_scope
from graphmend_codemod.analysis.values import INT64, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import beside
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.numbers.integers.list_changes import ListChanges
from graphmend_codemod.rules.proofs.untraced.evidence import assigned

_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)


rule = Rule(
    __name__,
    __doc__,
    title="check the Python list that a tensor was built from",
    contract=Contract(cost=Cost.NONE, may_raise=False),
)


@rule.on(ast.If, candidate="test")
def static_guard(site: Site, node: ast.If) -> Diagnostic | None:
    """`if f(tensor) != n: raise`, where the tensor holds a list's values."""
    if len(node.body) != 1 or not isinstance(node.body[0], ast.Raise):
        return None
    return _judge(site, node.test)


@rule.on(ast.Assert, candidate="test")
def static_assertion(site: Site, node: ast.Assert) -> Diagnostic | None:
    """`assert f(tensor) == n`, `assert parts`."""
    if isinstance(node.test, (ast.Name, ast.Attribute)):
        return _of_container(site, node)
    return _judge(site, node.test)


def _of_container(site: Site, node: ast.Assert) -> Diagnostic | None:
    """A list or a tuple, which Dynamo hands to `torch._assert` unless a message is made for it."""
    message = node.msg
    if message is not None and not (isinstance(message, ast.Constant) and isinstance(message.value, str)):
        return None
    if not _is_container(site, node.test):
        return None
    found = f"asserts a container: `{speculation.short(node.test)}`"
    taken = "torch" if site.torch is None else "bool"
    if site.torch is None or not site.stays("bool") or site.evaluator.scope.is_local("bool"):
        return Diagnostic(found, declined=name_taken(taken))
    return Diagnostic(found, edit=_edit(site, node.test, f"bool({site.text(node.test)})"))


def _is_container(site: Site, node: ast.expr) -> bool:
    """True for a name that can only hold a list, a tuple, a dict or a set."""
    if not isinstance(node, ast.Name):
        return False
    scope, values = site.evaluator.scope, assigned(site, node.id)
    arguments = scope.node.args
    if any(each is not None and each.arg == node.id for each in (arguments.vararg, arguments.kwarg)):
        return not any(name.id == node.id for name in _bound(site))
    held = len(values) == sum(name.id == node.id for name in _bound(site))
    return bool(values) and held and all(isinstance(each, _CONTAINERS) for each in values)


def _bound(site: Site) -> list[ast.Name]:
    return [
        node for node in of_kind(walk_scope(site.evaluator.scope.node), ast.Name) if not isinstance(node.ctx, ast.Load)
    ]


def _judge(site: Site, test: ast.expr) -> Diagnostic | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or split(site, test) is None:
        return None
    for operand, other in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
        found = _from_list(site, operand)
        if found is None or site.value(other).kind is ValueKind.TENSOR:
            continue
        tensor, text = found
        message = f"data-dependent check of a tensor built from a Python list: `{speculation.short(test)}`"
        source = site.place.env[tensor].built_from or ""
        change = _change(site, tensor, source)
        if change is not None:
            reason = f"`{source}` may have changed since `{tensor}` was built from it: `{change}`; check before that"
            return Diagnostic(message, declined=reason)
        return Diagnostic(message, edit=_edit(site, operand, text.format(source)))
    return None


def _edit(site: Site, operand: ast.expr, static: str) -> Edit:
    line = site.source.line(operand.lineno)
    longer = len(static) + len(site.compiling) + len("( if  else )")
    if len(line) + longer <= site.line_limit or operand.lineno != operand.end_lineno:
        parts = (f"({static} if {site.compiling} else ", site.original(operand), ")")
    else:
        parts = (f"(\n    {static}\n    if {site.compiling}\n    else ", site.original(operand), "\n)")
    return beside(site, site.span(operand), parts)


def _from_list(site: Site, node: ast.expr) -> tuple[str, str] | None:
    """The tensor and a template for the Python expression with its list as `{}`: `(t[:, 0] * t[:, 1]).sum()`.

    Of `t.sum()` the tensor may be made of rows, or of rows of rows, which a list does not add up as one.
    """
    total = _summed(site, node)
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Mult):
        return None
    left, right = _column(total.left), _column(total.right)
    if not left or not right or left[0].id != right[0].id or not _is_built(site, left[0]):
        return None
    numbers = [f"row[{each[1]}]" for each in (left, right)]
    if left[0].id not in site.flow.lists:
        numbers = [f"int({each})" for each in numbers]
    return left[0].id, f"sum({' * '.join(numbers)} for row in {{}})"


def _summed(site: Site, node: ast.expr) -> ast.expr | None:
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if site.resolve(node.func) == "torch.sum":
        return node.args[0] if len(node.args) == 1 else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and not node.args:
        return node.func.value
    return None


def _column(node: ast.expr) -> tuple[ast.Name, int] | None:
    """`t` and `1` for `t[:, 1]`."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Tuple)):
        return None
    rows, *columns = node.slice.elts
    if not (isinstance(rows, ast.Slice) and rows.lower is rows.upper is rows.step is None and len(columns) == 1):
        return None
    column = columns[0]
    known = isinstance(column, ast.Constant) and isinstance(column.value, int)
    return (node.value, column.value) if known else None  # type: ignore[attr-defined]


def _is_built(site: Site, node: ast.Name) -> bool:
    value = site.place.env.get(node.id)
    return value is not None and value.built_from is not None and value.dtype == INT64


def _change(site: Site, tensor: str, source: str) -> str | None:
    """What may have changed the list, or the tensor in place, since the tensor was bound."""
    stores = [node for node in walk_scope(site.evaluator.scope.node) if stores_name(node, tensor)]
    if len(stores) > 1 or (stores and site.place.in_loop):
        return speculation.short(stores[-1])
    if not stores and tensor not in site.flow.lists:
        return tensor
    calls = site.flow.origins.calls if site.flow.origins is not None else calls_in(site.source.text)
    line = site.place.statement.lineno
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return site.function
    changes = ListChanges(calls, lambda name: site.evaluator.scope.index.resolve(site.summary.name, name))
    found = changes.before(function, tensor, source, line - 1)
    return None if found is None else " ".join(found.split())
