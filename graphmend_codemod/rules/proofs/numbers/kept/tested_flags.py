"""Flags of Python that tensors decide, in names that are tested further down (GM401)."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_not
from graphmend_codemod.analysis.values import BOOL, SCALAR, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import holding, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.conditions.trace_time_conditions import tensor_checks
from graphmend_codemod.rules.proofs.number_read import number_read
from graphmend_codemod.rules.proofs.numbers.kept.scalar_uses import is_served
from graphmend_codemod.rules.proofs.numbers.kept.tested_numbers import tests_of

_TRUTH = frozenset({"builtins.bool"})
_ASKED = frozenset({"torch.equal", "torch.allclose", "torch.is_nonzero"})
_COMMENT = "# A 0-dim tensor: its truth would have to be read back to Python."


def kept_flag(site: Site, node: ast.Assign) -> Edit | None:
    """The edit for `empty = not bool(mask.any())`; None where the name holds no such flag, or is used for more."""
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Name) or not _is_flag(site, node.value):
        return None
    held = site.evaluator.names.tensor(BOOL, SCALAR, hint=True)
    test = number_read(site, node.value, _TRUTH) or node.value
    condition = split(site, test)
    if condition is None or condition.hazards.impure is not None or condition.skipped is not None:
        return None
    if not is_served(site, target.id, held):
        return None
    try:
        asked = [*tensor_checks(site, list(condition.tensors)), *condition.facts]
    except NotProven:
        return None
    static = [site.operand_of_and(operand) for operand in condition.static]
    lines = [_COMMENT, f"{target.id} = {_copied(condition.choice)}"]
    edit = two_paths(site, node, [site.compiling, *static, *asked], lines)
    return holding(site, edit, tests_of(site, target.id))


def _copied(text: str) -> str:
    """The text of a tensor of its own: what is written into another one later must not count."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        node = node.func.value
    return f"{text}.clone()" if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else text


def _is_flag(site: Site, node: ast.expr) -> bool:
    """True for what asks a tensor for its truth, or makes a bool of Python of it."""
    if is_not(node) or isinstance(node, ast.BoolOp):
        return True
    if isinstance(node, ast.Compare):
        return len(node.ops) > 1 or site.value(node).kind is ValueKind.PYTHON
    if not isinstance(node, ast.Call):
        return False
    read = number_read(site, node, _TRUTH)
    return site.resolve(node.func) in _ASKED or (
        read is not None and (site.value(read).dtype == BOOL or site.resolve(node.func) in _TRUTH)
    )
