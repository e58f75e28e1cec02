"""Whether a function may take a tensor for a number: where it casts, counts, cuts or asks for a size."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.project.summary.body import Body
from graphmend_codemod.project.summary.candidates import EXTREMES
from graphmend_codemod.project.summary.python_attributes import Held

READ_BACK = EXTREMES | frozenset({"mean", "norm", "std", "var", "median", "prod", "count_nonzero", "randint", "rand"})
"""Methods and functions of torch whose result is read back where it is taken for a number."""
_OF_PYTHON = frozenset(name for name in dir(builtins) if name not in EXTREMES)
_GIVES_NUMBERS = frozenset(torch_api.PYTHON_METHODS) | frozenset(
    "item tolist group total_seconds strip split replace count index find bit_length".split()
)
_MODULES = frozenset("math os sys time re random operator itertools functools np numpy".split())
_PARTS: dict[type[ast.expr], tuple[str, ...]] = {
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Starred: ("value",),
    ast.Compare: ("left", "comparators"),
    ast.IfExp: ("body", "orelse"),
    ast.Subscript: ("value",),
}


def takes_tensor(body: Body, owner: str, held: Held) -> bool:
    """True where something in the place of a number may be a tensor, for all that the file says of where it is from."""
    names: list[str] = []
    if not body.numbers or _reads_back(body, names):
        return bool(body.numbers)
    origins = body.origins(dict.fromkeys(names))
    if origins is None:
        return True
    return any(
        not held.is_python(owner, name[5:])
        if name.startswith("self.")
        else name in body.parameters and not body.is_python_parameter(name)
        for name in origins
    )


def _reads_back(body: Body, names: list[str]) -> bool:
    """True for `x.max() + 1`; otherwise adds the names that decide, attributes of the instance as `self.NAME`."""
    todo: list[Any] = list(body.numbers)
    while todo:
        part = todo.pop()
        kind = type(part)
        if kind is ast.Name:
            names.append(part.id)
        elif kind is ast.Attribute:
            inner = part.value
            if part.attr == "data":
                return True
            if type(inner) is ast.Name and inner.id == body.own:
                names.append(f"self.{part.attr}")
        elif kind is ast.Call:
            if is_reduced(part) or _may_give_tensor(part):
                return True
        elif kind in _PARTS:
            for field in _PARTS[kind]:
                inside = getattr(part, field)
                todo += inside if type(inside) is list else (inside,)
    return False


def _may_give_tensor(node: ast.Call) -> bool:
    """True for `torch.dot(x, y)`, `x.detach()`, `self.loss(x)` and `f(x)`; not for what gives a number or a word."""
    function = node.func
    if type(function) is ast.Name:
        return function.id not in _OF_PYTHON
    if type(function) is not ast.Attribute:
        return True
    owner = function.value
    return function.attr not in _GIVES_NUMBERS and not (type(owner) is ast.Name and owner.id in _MODULES)


def is_reduced(node: ast.expr) -> bool:
    """True for `x.max()`, and for `x.max().clamp(1)`."""
    while type(node) is ast.Call and type(node.func) is ast.Attribute:
        if node.func.attr in READ_BACK:
            return True
        node = node.func.value
    return False
