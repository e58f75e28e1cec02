"""Tensors that are made of one size and filled with a number out of a 0-dim tensor, which can stay in it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import last_name, owner_of
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_EMPTY = {"new_full": "new_empty", "full_like": "empty_like"}
"""Functions that Dynamo gives the number itself, and those of the same size that need none. It fills what `torch.full`
makes with the tensor."""
_UNKNOWN = frozenset({"layout", "pin_memory", "memory_format", "requires_grad", "out"})
"""Keywords with which what is filled is not the same, or cannot be filled."""


class _Filling(NamedTuple):
    tensor: ast.expr
    value: ast.expr
    words: dict[str | None, ast.expr]


def filled(site: Site, call: ast.Call) -> tuple[str, tuple[str, ...]] | None:
    """`x.new_empty(size).fill_(t)` for `x.new_full(size, t)`, with its conditions; None where `t` seems a number.

    That `t` is a tensor is a guess, and what is written asks for it. A value of another dtype than the result is left
    to eager mode, where one that does not fit raises; so is one that needs a gradient, for which it raises as well.
    """
    name = last_name(call.func)
    filling = _filling(site, call) if name in _EMPTY else None
    if filling is None or not _may_be_tensor(site, filling.value):
        return None
    tensor, value, words = filling
    repeated = [tensor, value, *(words[each] for each in ("dtype", "device") if each in words)]
    for each in repeated:
        if _computes(each):
            raise NotProven(f"`{short(each)}` would be computed twice; assign it to a variable first")
    x, t = site.operand(tensor), site.operand(value)
    known = site.value(tensor)
    conditions = [] if known.is_tensor and not known.hint else [f"isinstance({x}, {site.torch}.Tensor)"]
    conditions += [f"isinstance({t}, {site.torch}.Tensor)", f"{t}.dim() == 0"]
    for word in ("dtype", "device"):
        made = site.operand(words[word]) if word in words else f"{x}.{word}"
        conditions.append(f"{t}.{word} == {made}")
    kept = [each for each in call.args if each is not value]
    texts = [*map(site.text, kept), *(f"{each}={site.text(node)}" for each, node in words.items() if node is not value)]
    owner = x if name == "new_full" else site.torch
    return f"{owner}.{_EMPTY[name]}({', '.join(texts)}).fill_({t})", (*conditions, f"not {t}.requires_grad")


def _filling(site: Site, call: ast.Call) -> _Filling | None:
    """The tensor of which the size or the dtype is taken, and the value; None for another function of that name."""
    words = {word.arg: word.value for word in call.keywords}
    given = list(call.args)
    if None in words or not _UNKNOWN.isdisjoint(words) or any(isinstance(each, ast.Starred) for each in given):
        return None
    if isinstance(words.get("device"), ast.Constant):
        return None  # no device is equal to its text
    method = last_name(call.func) == "new_full"
    if method:
        tensor = owner_of(call)
        own = site.resolve(call.func) is None
    else:
        tensor = given[0] if given else words.get("input")
        own = torch_api.torch_function(site.resolve(call.func)) == "full_like"
    value = given[1] if len(given) == 2 else words.get("fill_value")
    if not own or tensor is None or value is None or len(given) > 2:
        return None
    return _Filling(tensor, value, words)


def _may_be_tensor(site: Site, value: ast.expr) -> bool:
    known = site.value(value)
    if isinstance(value, ast.Constant) or (known.is_python and not known.hint):
        return False
    if known.kind is ValueKind.TENSOR:
        return True
    from graphmend_codemod.rules.proofs.untraced.guesses import seems_number  # a commit hook waits for it

    return seems_number(site, value)


def _computes(node: ast.expr) -> bool:
    """True for what is not read alone: a name, an attribute, an element of one at a place that a name tells."""
    if isinstance(node, ast.Subscript):
        return _computes(node.value) or not (isinstance(node.slice, ast.Constant) or dotted(node.slice) is not None)
    return _computes(node.value) if isinstance(node, ast.Attribute) else not isinstance(node, (ast.Constant, ast.Name))
