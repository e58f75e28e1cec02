"""Trace-time conditions on types and dtypes that the source does not prove; Dynamo folds them.

An annotation is a hint, and so is what a constructor registers: numpy arrays are given for annotated tensors, and code
elsewhere puts other things into attributes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import owner_of
from graphmend_codemod.analysis.scope import children, dotted, parameter_names, walk_scope
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import Value, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_NEW_MEMORY = frozenset(
    """all amax amin any argmax argmin count_nonzero logsumexp max mean median min nanmean nansum norm prod std sum
    trace var""".split()
)


def tensor_facts(site: Site, node: ast.expr) -> list[str]:
    """Conditions under which what an expression takes for tensors are tensors, of the dtypes that it takes them for.

    `isinstance(x, torch.Tensor)` for a name or attribute that only a hint calls a tensor, or nothing; with
    `x.dtype == torch.int64` where the hint names a dtype. NotProven where such a tensor has no name.
    """
    found: dict[str, None] = {}
    todo: list[tuple[ast.AST, bool]] = [(node, True)]
    while todo:
        part, typed = todo.pop(0)
        value = site.value(part) if isinstance(part, ast.expr) else None
        if value is None:
            inner = children(part)
        elif isinstance(part, ast.Attribute) and site.value(part.value).kind is ValueKind.TENSOR:
            inner = [part.value]
        elif isinstance(part, (ast.Name, ast.Attribute)) and dotted(part) is not None:
            found |= dict.fromkeys(_asked(site, part, value, typed))
            continue
        elif isinstance(part, ast.Call):
            inner = [*_receiver(site, part), *part.args, *(word.value for word in part.keywords)]
        else:
            # A comparison is bool whatever it compares.
            inner, typed = children(part), typed and not isinstance(part, ast.Compare)
        todo += [(each, typed) for each in inner]
    return list(found)


def _asked(site: Site, node: ast.expr, value: Value, typed: bool) -> Iterator[str]:
    if value.kind is ValueKind.TENSOR and value.hint:
        yield f"isinstance({site.text(node)}, {site.torch}.Tensor)"
        if typed and value.dtype is not None and value.dtype.startswith("torch."):
            yield f"{site.text(node)}.dtype == {site.torch}.{value.dtype.removeprefix('torch.')}"


def _receiver(site: Site, call: ast.Call) -> list[ast.AST]:
    """What a method is called on; NotProven for a layer or function whose result only a hint calls a tensor."""
    if torch_function(site.resolve(call.func)) is not None:
        return []
    owner = owner_of(call)
    if owner is not None and site.value(owner).kind is ValueKind.TENSOR:
        return [owner]
    if site.value(call).kind is ValueKind.TENSOR and site.value(call).hint:
        raise NotProven(f"`{speculation.short(call)}` may not be a Tensor; assign it to a variable first")
    return [] if owner is None else [owner]


def asked_below(site: Site, node: ast.expr) -> list[str]:
    """Conditions on the dtypes in an expression further down; NotProven where they cannot be asked for above.

    Only what a hint calls a tensor of one dtype counts: any other dtype was compared with that of a tensor above.
    """
    facts = [each for each in tensor_facts(site, node) if ".dtype == " in each]
    function = site.evaluator.scope.node
    given = parameter_names(function)
    names = [part for part in walk_scope(function) if isinstance(part, ast.Name)]
    bound = {part.id for part in names if not isinstance(part.ctx, ast.Load)}
    for fact in facts:
        name = fact.partition(".dtype == ")[0]
        if name not in given - bound:
            raise NotProven(
                f"only an annotation or a constructor gives the dtype of `{name}`; convert it first: `.to(dtype)`"
            )
    return [f"isinstance({each.partition('.dtype')[0]}, {site.torch}.Tensor)" for each in facts] + facts


def tensors_below(site: Site, node: ast.expr) -> list[str]:
    """Conditions under which what an expression further down takes for tensors are; NotProven as for `asked_below`."""
    asked = dict.fromkeys(each for each in tensor_facts(site, node) if ".dtype == " not in each)
    function = site.evaluator.scope.node
    bound = {part.id for part in walk_scope(function) if isinstance(part, ast.Name) and part.ctx.__class__ is ast.Store}
    stays = parameter_names(function) - bound
    for fact in asked:
        name = fact.removeprefix("isinstance(").partition(",")[0]
        if name not in stays:
            raise NotProven(f"only an annotation or a constructor says that `{name}` is a Tensor")
    return list(asked)


def without_dimensions(site: Site, node: ast.expr) -> str:
    """The text of a tensor of one element as an operand, 0-dim as a number is, whatever a buffer's shape is."""
    return site.operand(node) if site.value(node).is_single else f"{site.operand(node)}.reshape(())"


def own_memory(site: Site, node: ast.expr, text: str) -> str:
    """`text` of a 0-dim tensor, copied unless it is certainly new: what is written into it later must not count."""
    new = isinstance(node, (ast.BinOp, ast.Compare))
    if isinstance(node, ast.UnaryOp):
        new = isinstance(node.op, (ast.USub, ast.Invert))
    if isinstance(node, ast.Call):
        name = torch_function(site.resolve(node.func)) or (
            node.func.attr if isinstance(node.func, ast.Attribute) else ""
        )
        new = name in _NEW_MEMORY and not any(word.arg == "out" for word in node.keywords)
    return text if new else f"{text}.clone()"
