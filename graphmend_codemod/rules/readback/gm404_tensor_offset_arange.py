"""tensor-offset-arange (GM404): `torch.arange(start, start + length)` where `start` is a tensor.

How many numbers that are is known, but `torch.arange` reads both bounds back to Python, which breaks the graph. Under
`torch.compile` the numbers from zero are counted and `start` is added to them on the device. Eager mode runs the
original statement, word for word.

`start` may also be what a method returns that counts in a tensor (`return mask.any(-1).sum()`), such as the length of
a cache of fixed size. Other classes may return a Python number there: Dynamo knows while it traces which of both it
is, and a Python number keeps the original statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.calls import keyword
from graphmend_codemod.analysis.patterns import is_size, same, values_assigned
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.analysis.torch_api import INT64_NAMES
from graphmend_codemod.analysis.values import INT64, ValueKind
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site

rule = Rule(
    __name__, __doc__, title="add the start tensor to a torch.arange from zero", contract=Contract(cost=Cost.NONE)
)

_COMMENT = "# The length is known: only where it starts is in a tensor."


@rule.on(ast.Assign, words=("arange",), here=True)
def shifted_range(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`places = torch.arange(start, start + length)`."""
    call = node.value
    if len(node.targets) != 1 or not isinstance(call, ast.Call) or len(call.args) != 2:
        return None
    start, length = call.args[0], _length(call)
    if length is None or not isinstance(start, ast.Name) or site.resolve(call.func) != "torch.arange":
        return None
    value = site.value(start)
    if not value.is_single and (value.kind is ValueKind.TENSOR or not _counted(site, start.id)):
        return None
    message = f"`torch.arange` starts at a tensor (device sync): `{speculation.short(call)}`"
    reason = _why_not(site, call, length)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    facts = [f"isinstance({start.id}, {site.torch}.Tensor)"] if value.hint or not value.is_single else []
    facts += [] if value.is_single else [f"{start.id}.dim() == 0"]
    facts += [] if value.dtype == INT64 and not value.hint else [f"{start.id}.dtype == {site.torch}.int64"]
    device = keyword(call, "device")
    moved = f"{start.id}.to({site.text(device)})" if device is not None else start.id
    facts += [] if device is not None else [f'{start.id}.device.type == "cpu"']
    counted = [site.text(part) for part in (length, *call.keywords)]
    before = f"{site.text(node.targets[0])} = {moved} + {site.text(call.func)}("
    line = site.call(before, counted, deeper=1)
    return Diagnostic(message, edit=two_paths(site, node, [site.compiling, *facts], [_COMMENT, line]))


def _length(call: ast.Call) -> ast.expr | None:
    """`n` for `arange(start, start + n)` and `arange(start, n + start)`."""
    start, end = call.args
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Add):
        return None
    if same(start, end.left):
        return end.right
    return end.left if same(start, end.right) else None


def _why_not(site: Site, call: ast.Call, length: ast.expr) -> str | None:
    if not site.value(length).is_python and not is_size(length):
        return f"cannot infer that `{speculation.short(length)}` is a Python number"
    for word in call.keywords:
        simple = isinstance(word.value, (ast.Name, ast.Attribute))
        if word.arg == "dtype" and site.resolve(word.value) in INT64_NAMES:
            continue
        if word.arg == "dtype":
            return f"`{site.text(word)}` may round"
        if word.arg != "device" or not simple:
            return f"`{site.text(word)}` is given"
    return None


def _counted(site: Site, name: str) -> bool:
    """True when a method that counts in a tensor may have given the name its value."""
    function = site.evaluator.scope.node
    index = site.evaluator.scope.index
    for value in values_assigned(function, name):
        for call in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if not isinstance(call.func.value, ast.Name):
                continue
            for owner in _classes(site, function, call.func.value.id):
                facts = index.class_facts(owner)
                method = facts.methods.get(call.func.attr) if facts is not None else None
                counting = index.function(method) if method is not None else None
                if counting is not None and counting.counts:
                    return True
    return False


def _classes(site: Site, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> Iterator[str]:
    """Classes that a local name may be an instance of: those that it is annotated with, and those that are made."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.arg == name and argument.annotation is not None:
            for part in walk_in_layers(argument.annotation):
                if isinstance(part, (ast.Name, ast.Attribute)) and (found := site.resolve_global(part)) is not None:
                    yield found
    for value in values_assigned(function, name):
        if isinstance(value, ast.Call) and (found := site.resolve(value.func)) is not None:
            yield found
