"""A Python integer that goes through a floating tensor, and comes back as a number: how losses count their boxes.

`n = torch.as_tensor([n], dtype=torch.float)`, then `n = torch.clamp(n / get_world_size(), min=1).item()`: the tensor is
there to be added up over processes. Where there is one process, the number is the integer, clamped. Up to 2**24 each
integer is a `float32` of its own.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import is_name, is_none, only_target, written_integer
from graphmend_codemod.analysis.scope import SCOPES, FunctionNode, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.edits import line_of, path_beside
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Diagnostic
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.number_read import number_read
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import is_builtin
from graphmend_codemod.rules.proofs.outlining.effects.single_process import ASKED, idle_nodes, value_alone

_COMMENT = "# The number that the tensor was made of: it would have to be read back."
_FLOATS = frozenset({"torch.float", "torch.float32", "torch.double", "torch.float64"})
_CASTS = frozenset({"builtins.float"})
_LARGEST = 2**24
_CLAMPS = {"clamp": ("min", "max"), "clip": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",)}
Limits = list[tuple[str, int]]


class _Read(NamedTuple):
    """What reads the tensor `name`: the text of the number in terms of `{}`, and whether one process is asked for."""

    node: ast.expr
    name: ast.Name
    text: str
    alone: bool


def read_as_float(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`n = torch.clamp(n / get_world_size(), min=1).item()` where `n` was a Python integer before; None elsewhere."""
    read = next(filter(None, (_read(site, part) for part in walk_in_layers(statement))), None)
    made = Blocks(site.evaluator.scope.node).binding_before(statement, read.name.id) if read is not None else None
    number = _made_of(site, made) if made is not None else None
    if read is None or made is None or number is None:
        return None
    message = f"reads a number out of a tensor that was made of it (device sync): `{short(read.node)}`"
    try:
        return Diagnostic(message, edit=_edit(site, statement, made, number, read), node=read.node)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason), node=read.node)


def _read(site: Site, node: ast.AST) -> _Read | None:
    inner = number_read(site, node, _CASTS)
    if inner is None or isinstance(inner, ast.Constant):
        return None
    limits: Limits = []
    while (clamped := _clamped(site, inner)) is not None:
        inner, more = clamped
        limits = [*more, *limits]
    alone = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div)
    if isinstance(inner, ast.BinOp) and alone:
        if written_integer(inner.right) != 1 and value_alone(site, inner.right) != 1:
            return None
        alone, inner = written_integer(inner.right) is None, inner.left
    if not isinstance(inner, ast.Name) or not isinstance(node, ast.expr):
        return None
    text = "{}"
    for limit, number in limits:
        text = f"{'max' if limit == 'min' else 'min'}({text}, {number})"
    return _Read(node, inner, f"float({text})", alone)


def _clamped(site: Site, node: ast.expr) -> tuple[ast.expr, Limits] | None:
    """What is clamped, between which integers; `min` first, as torch does it."""
    name, given = site.operation(node) if isinstance(node, ast.Call) else ("", [])
    if name not in _CLAMPS or not given or not isinstance(node, ast.Call):
        return None
    limits = dict(zip(_CLAMPS[name], given[1:], strict=False))
    limits |= {word.arg or "": word.value for word in node.keywords}
    limits = {key: each for key, each in limits.items() if not is_none(each)}
    known: Limits = []
    for key in _CLAMPS["clamp"]:
        number = _whole(limits[key]) if key in limits else None
        known += [(key, number)] if number is not None else []
    whole = len(known) == len(limits) and len(given) <= 1 + len(_CLAMPS[name])
    return (given[0], known) if known and whole else None


def _whole(node: ast.expr) -> int | None:
    """`1` for `1` and `1.0`, up to what a `float32` tells apart."""
    value = node.value if isinstance(node, ast.Constant) else written_integer(node)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > _LARGEST:
        return None
    return int(value) if value == int(value) else None


def _made_of(site: Site, made: ast.Assign) -> ast.Name | None:
    """`n` for `torch.as_tensor([n], dtype=torch.float)`, which holds nothing else."""
    call = made.value if isinstance(only_target(made), ast.Name) else None
    if not isinstance(call, ast.Call) or torch_function(site.resolve_global(call.func)) not in {"tensor", "as_tensor"}:
        return None
    words = {word.arg: word.value for word in call.keywords}
    whole = len(call.args) == 1 and words.keys() <= {"dtype", "device"}
    if not whole or "dtype" not in words or site.resolve_global(words["dtype"]) not in _FLOATS:
        return None
    given = call.args[0].elts if isinstance(call.args[0], ast.List) else call.args
    return given[0] if len(given) == 1 and isinstance(given[0], ast.Name) else None


def _edit(site: Site, statement: ast.stmt, made: ast.Assign, number: ast.Name, read: _Read) -> Edit:
    """The integer in place of what is read, with a copy of it where its name is bound again."""
    alone = _demand_unchanged(site, statement, made, read) or read.alone
    if site.torch is None:
        raise NotProven(name_taken())
    for name in ("float", "type", *(each for each in ("max", "min") if f"{each}(" in read.text)):
        if not is_builtin(site, name):
            raise NotProven(name_taken(name))
    name = number.id if _stays(site, number.id, made, statement) else site.free_name(f"number_in_{read.name.id}")
    whole = f"type({name}) is int and abs({name}) <= {_LARGEST}"
    conditions = [site.compiling, *([ASKED.format(site.torch)] if alone else []), *whole.split(" and ")]
    text = read.text.format(name)
    line = line_of(site.but(written={id(read.node): (read.node, text)}), statement)
    replacements = [path_beside(site, statement, conditions, [_COMMENT, line])]
    if name != number.id:
        copy = f"{name} = {number.id} if {site.compiling} else None\n"
        replacements.insert(0, Replacement(site.span(made), (copy, site.original(made))))
    return Edit(tuple(replacements), imports=site.imports)


def _stays(site: Site, name: str, made: ast.Assign, statement: ast.stmt) -> bool:
    """True for a local that no statement from one up to another may bind again."""
    function = site.evaluator.scope.node
    stores = [part for part in walk(function) if is_name(part, name) and isinstance(part.ctx, ast.Store)]
    between = range(made.lineno, (statement.end_lineno or 0) + 1)
    own = name in site.evaluator.scope.locals and not _nested(function)
    return own and not any(part.lineno in between for part in stores)


def _nested(function: FunctionNode) -> list[ast.AST]:
    return [each for each in walk(function) if isinstance(each, (ast.Lambda, *SCOPES)) and each is not function]


def _demand_unchanged(site: Site, statement: ast.stmt, made: ast.Assign, read: _Read) -> bool:
    """Whether only one process leaves the tensor as it was made. NotProven where anything else may change it."""
    function = site.evaluator.scope.node
    apart = {id(part) for each in (made, statement) for part in walk(each)}
    between = [
        part
        for part in walk(function)
        if is_name(part, read.name.id)
        and id(part) not in apart
        and made.lineno <= part.lineno <= (statement.end_lineno or 0)
    ]
    loops = any(isinstance(each, (ast.For, ast.While, ast.AsyncFor)) for each in site.place.parents)
    nested = [part for each in _nested(function) for part in walk(each)]
    if loops or any(is_name(part, read.name.id) for part in nested):
        raise NotProven(f"`{read.name.id}` may be changed elsewhere; manually keep the number it is made of")
    if not between:
        return False
    idle = {id(each) for each in idle_nodes(site, function)}
    if any(id(part) not in idle for part in between):
        raise NotProven(f"`{read.name.id}` may be changed before it is read; manually keep the number it is made of")
    return True
