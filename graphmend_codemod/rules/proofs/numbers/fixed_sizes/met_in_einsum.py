"""Repeated rows that `einsum` puts beside a tensor: `einsum("ij,ijk->ik", y, x.repeat_interleave(counts, 0))`.

A letter stands for one size, or for a single row, which is spread. So the other tensor with the letter says how many
rows there are, as a tensor beside them in arithmetic does (`met_sizes`). All of them may be values of a dict.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_within, only_target, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.met_sizes import SIMPLE, Beside, arguments, repeated_helper
from graphmend_codemod.rules.proofs.rowwise.selectors import is_item

_CASTS = frozenset("to float double half bfloat16 long int type contiguous detach".split())
_ASKED = frozenset({"dtype", "device"})


def repeated_in_einsum(site: Site, statement: ast.stmt, call: ast.Call) -> FixedForm | None:
    """`_repeated_to(y.shape[0], x, counts, 0)`, kept for the `einsum` of the next statement; None for anything else."""
    given, kept = arguments(site, call), only_target(statement)
    if given is None or site.settings.guards != "assert" or not isinstance(kept, ast.Name):
        return None
    tensor, counts, dim = given
    number = written_integer(dim)
    if number is None or not (_is_plain(tensor) and _is_plain(counts)) or statement.value is not call:  # type: ignore[attr-defined]
        return None
    met = _met(Beside(site, statement, call), kept.id, number)
    if met is None:
        return None
    other, place = met
    x, n, y, torch = site.text(tensor), site.text(counts), site.text(other), site.torch
    conditions = [f"isinstance({each}, {torch}.Tensor)" for each in dict.fromkeys((x, n, y))]
    conditions += [f"{n}.dim() == 1", f"{n}.dtype in ({torch}.int32, {torch}.int64)"]
    conditions += [f"{n}.shape[0] == {x}.shape[{number}]", f"{y}.shape[{place}] != 1"]
    text = f"_repeated_to({y}.shape[{place}], {x}, {n}, {number})"
    return FixedForm(call, text, tuple(conditions), sized=True, helpers=(repeated_helper(site),))


def _met(beside: Beside, kept: str, number: int) -> tuple[ast.expr, int] | None:
    """Another tensor, and which of its dimensions has the number of the rows."""
    first, loads = next(iter(beside.following), None), beside.uses(kept)
    there = beside.site.at(first) if isinstance(first, SIMPLE) else None
    if first is None or there is None or there.live_after(kept) or not all(is_within(each, first) for each in loads):
        return None
    operands = [each for each in loads if not _is_asked(beside.parent(each))]
    call = beside.parent(operands[0]) if len(operands) == 1 else None
    if not isinstance(call, ast.Call) or there.resolve(call.func) != "torch.einsum" or call.keywords:
        return None
    equation, *given = call.args
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str) or "." in equation.value:
        return None
    letters = equation.value.partition("->")[0].replace(" ", "").split(",")
    tensors = [_of_same_shape(each) for each in given]
    if len(letters) != len(given) or not all(map(_is_plain, tensors)) or not beside.always_runs(call, first):
        return None
    own = letters[given.index(operands[0])]
    if not -len(own) <= number < len(own) or own.count(own[number]) > 1:
        return None
    for tensor, each in zip(given, letters, strict=True):
        if tensor is not operands[0] and own[number] in each:
            return _of_same_shape(tensor), each.index(own[number])
    return None


def _is_asked(node: ast.AST | None) -> bool:
    """True for `rows.dtype`, which is the same whatever their number."""
    return isinstance(node, ast.Attribute) and node.attr in _ASKED


def _of_same_shape(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
        node = node.func.value
    return node


def _is_plain(node: ast.expr) -> bool:
    """True for names, attributes, and values of a dict."""
    return dotted(node) is not None or is_item(node)
