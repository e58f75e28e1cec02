"""Masks that compare a range of integers with one: `x[:, torch.arange(n) != k]` leaves out one element.

Which elements these are Python can say: `x[:, [each for each in range(n) if each != k]]`.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of, is_basic, is_size
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import reads_loudly
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import is_builtin

_OPERATORS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.USub, ast.Load)
_MOST = 1024
"""So many integers a list of the compiled code may hold."""


def is_compared_range(node: ast.expr) -> bool:
    """True for `arange(n) != k`, by its look alone."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
        return False
    made = node.left
    spelled = isinstance(made, ast.Call) and (dotted(made.func) or "").rpartition(".")[2]
    return spelled == "arange"


def selected_by_range(site: Site, node: ast.expr) -> FixedForm | None:
    """What takes the place of `x[:, torch.arange(n) != k]` where n and k are integers; None for anything else."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load) or dotted(node.value) is None:
        return None
    parts = elements_of(node.slice)
    masks = [each for each in parts if is_compared_range(each)]
    if len(masks) != 1 or not all(is_basic(each) for each in parts if each is not masks[0]):
        return None
    before = parts[: parts.index(masks[0])]
    if not all(isinstance(each, ast.Slice) for each in before):
        return None
    mask, place = masks[0], len(before)
    assert isinstance(mask, ast.Compare) and isinstance(mask.left, ast.Call)  # noqa: PT018
    made, bound = mask.left, mask.comparators[0]
    begins = [each for each in made.args[:-1] if not (isinstance(each, ast.Constant) and each.value == 0)]
    if site.resolve(made.func) != "torch.arange" or len(made.args) not in (1, 2) or begins:
        return None  # where it begins with another integer, that is at no place of that number
    end = made.args[-1]
    if not all(_may_be_integer(site, each) for each in (end, bound)):
        return None
    devices = [_device(site, each, node.value) for each in made.keywords]
    if None in devices:
        return None
    if not (is_builtin(site, "range") and is_builtin(site, "isinstance") and is_builtin(site, "int")):
        return None
    name, x, k = site.free_name("each", "index"), site.text(node.value), site.operand(bound)
    counted, size = site.text(end), f"{x}.shape[{place}]"
    listed = f"[{name} for {name} in range({counted}) if {name} {_OPERATORS[type(mask.ops[0])]} {k}]"
    asked = [each for each in (end, bound) if not isinstance(each, ast.Constant) and site.text(each) != size]
    conditions = [f"isinstance({x}, {site.torch}.Tensor)", f"{x}.dim() > {place}"]
    conditions += [f"isinstance({site.text(each)}, int)" for each in asked]
    conditions += [*([] if counted == size else [f"{size} == {site.operand(end)}"]), f"{size} <= {_MOST}"]
    conditions += [each for each in devices if each]
    text = site.but(written={id(mask): (mask, listed)}).text(node)
    return FixedForm(node, text, tuple(conditions), sized=True)


def _device(site: Site, word: ast.keyword, tensor: ast.expr) -> str | None:
    """What to ask of the device of a mask, which a tensor elsewhere refuses; empty for its own, None if not known."""
    if word.arg != "device" or not (isinstance(word.value, ast.Constant) or dotted(word.value) is not None):
        return None
    given, own = site.text(word.value), f"{site.text(tensor)}.device"
    return "" if given in (own, "None") else f"({given} is None or {given} == {own})"


def _may_be_integer(site: Site, node: ast.expr) -> bool:
    """True for a size, a number, a name or an attribute that only holds a value, and sums of these."""
    if isinstance(node, (ast.Subscript, ast.Call)) and is_size(node):
        return True
    if not all(isinstance(each, _PLAIN) for each in ast.walk(node)):
        return False
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and type(each.value) is not int:
            return False
        if isinstance(each, (ast.Name, ast.Attribute)):
            spelled = dotted(each)
            if spelled is None or ("." in spelled and reads_loudly(site.evaluator, spelled)):
                return False
            if site.value(each).kind is ValueKind.TENSOR and isinstance(node, (ast.Name, ast.Attribute)):
                return False
    return True
