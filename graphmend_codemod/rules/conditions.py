"""Tests that read a tensor's value: which part is static, and the tensor expression that decides."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.values import BOOL, INT64, SCALAR, Kind, Origin
from graphmend_codemod.rules.site import Site

_IDENTITY = frozenset({ast.Is, ast.IsNot, ast.In, ast.NotIn})


class Condition(NamedTuple):
    """A test split in two: `static` conjuncts come first and are Python; `tensors` decide at run time.

    `text` is an expression for one 0-dim bool tensor that is true exactly when all tensor conjuncts are; `inverse` the
    same for its negation. `facts` are trace-time conditions that must hold for `text` to be that expression. `several`
    names a part that may hold more than one element, None if none may. `verdict` judges the parts that Python's `and`
    and `or` would have skipped.
    """

    static: tuple[ast.expr, ...]
    tensors: tuple[ast.expr, ...]
    text: str
    inverse: str
    several: str | None
    verdict: purity.Verdict
    facts: tuple[str, ...] = ()


def reads_tensor(site: Site, node: ast.expr) -> bool:
    """True when the truth value of `node` comes from a tensor's elements."""
    if isinstance(node, ast.BoolOp):
        return any(reads_tensor(site, operand) for operand in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return reads_tensor(site, node.operand)
    if isinstance(node, ast.Constant) or (isinstance(node, ast.Compare) and asks_identity(node)):
        return False
    if isinstance(node, ast.Compare) and _numbers_compared(site, node) is not None:
        return True
    if isinstance(node, ast.Call) and _comparison_call(site, node) is not None:
        return True
    inner = _unwrapped(site, node)
    value = site.value(inner)
    if isinstance(inner, (ast.Name, ast.Attribute)) and value.kind is Kind.TENSOR:
        # `if output_attentions:` with a wrong annotation is common; a real tensor of several elements would raise.
        return value.shape == SCALAR or value.dtype == BOOL
    return value.kind is Kind.TENSOR


def asks_identity(node: ast.Compare) -> bool:
    """True for `x is None` and `x in names`, whose value is a Python bool."""
    return not _IDENTITY.isdisjoint(map(type, node.ops))


def split(site: Site, test: ast.expr) -> Condition | None:
    """Split a test; None when no tensor decides it, or when Dynamo folds it."""
    return site.remembered("split", test, lambda: _split(site, test))


def _split(site: Site, test: ast.expr) -> Condition | None:
    # Asked first, for few tests read a tensor.
    if not reads_tensor(site, test):
        return None
    whole = site.value(test)
    if whole.truth is not None or whole.compiling is not None:
        return None
    conjuncts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    static = tuple(operand for operand in conjuncts if not reads_tensor(site, operand))
    tensors = tuple(operand for operand in conjuncts if reads_tensor(site, operand))
    parts = [_part(site, operand) for operand in tensors]
    text = " & ".join(part.text if len(parts) == 1 else part.tight for part in parts)
    inverse = parts[0].inverse if len(parts) == 1 else f"~({text})"
    verdict = _skipped(site, conjuncts, static)
    for part in parts:
        verdict = verdict & part.verdict
    for operand in tensors[1:]:
        verdict = verdict & site.judge(_unwrapped(site, operand))
    several = next((part.several for part in parts if part.several), None)
    facts = tuple(fact for part in parts for fact in part.facts)
    return Condition(static, tensors, text, inverse, several, verdict._replace(finite=True), facts)


def _skipped(site: Site, conjuncts: list[ast.expr], static: tuple[ast.expr, ...]) -> purity.Verdict:
    """Static conjuncts behind a tensor now come before it."""
    verdict = purity.FREE
    before: list[ast.expr] = []
    for operand in conjuncts:
        if operand not in static:
            before.append(operand)
        elif before:
            verdict = verdict & site.judge(operand)
            for tensor in before:
                # A false static conjunct now keeps the tensor's test from running at all.
                verdict = verdict & purity.Verdict(impure=site.judge(_unwrapped(site, tensor)).impure)
    return verdict


class _Part(NamedTuple):
    text: str
    tight: str
    inverse: str
    several: str | None = None
    verdict: purity.Verdict = purity.FREE
    facts: tuple[str, ...] = ()


def _part(site: Site, node: ast.expr) -> _Part:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _part(site, node.operand)
        return _Part(inner.inverse, inner.inverse, inner.text, inner.several, inner.verdict, inner.facts)
    if isinstance(node, ast.BoolOp):
        return _connective(site, node)
    call = _comparison_call(site, node)
    if call is not None:
        return call
    numbers = _numbers_compared(site, node)
    if numbers is not None:
        return numbers
    return _leaf(site, _unwrapped(site, node))


def _connective(site: Site, node: ast.BoolOp) -> _Part:
    parts, verdict = [], purity.FREE
    for position, operand in enumerate(node.values):
        if not reads_tensor(site, operand):
            verdict = verdict & purity.Verdict(impure=f"`{site.text(operand)}` is combined with a tensor by `or`")
            continue
        parts.append(_part(site, operand))
        if position:
            verdict = verdict & site.judge(_unwrapped(site, operand))
    for part in parts:
        verdict = verdict & part.verdict
    sign = " | " if isinstance(node.op, ast.Or) else " & "
    text = sign.join(part.tight for part in parts)
    several = next((part.several for part in parts if part.several), None)
    facts = tuple(fact for part in parts for fact in part.facts)
    return _Part(text, f"({text})", f"~({text})", several, verdict, facts)


def _unwrapped(site: Site, node: ast.expr) -> ast.expr:
    """`t` for `bool(t)`, and for `t.item()` where `t` is bool."""
    while isinstance(node, ast.Call):
        if site.resolve(node.func) == "builtins.bool" and len(node.args) == 1 and not node.keywords:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
            if site.value(node.func.value).dtype != BOOL:
                break
            node = node.func.value
        else:
            break
    return node


def _leaf(site: Site, node: ast.expr) -> _Part:
    value = site.value(node)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        impure = f"`{purity.short(node)}` is two tests in one, and Python's `and` stands between them"
        return _Part("", "", "", verdict=purity.Verdict(impure=impure))
    several = None
    if not (value.is_single or _scalar_comparison(site, node) or (value.shape == SCALAR and value.optional)):
        several = site.text(node)
    text = site.text(node)
    tight = site.operand(node)
    if value.dtype == BOOL:
        return _Part(text, tight, _opposite(site, node) or f"~{tight}", several)
    return _Part(f"{tight} != 0", f"({tight} != 0)", f"{tight} == 0", several)


def _opposite(site: Site, node: ast.expr) -> str | None:
    """`a != b` for `a == b` and the other way round; other comparisons have no opposite where nan may occur."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    sign = "!=" if isinstance(node.ops[0], ast.Eq) else "=="
    return f"{site.text(node.left)} {sign} {site.text(node.comparators[0])}"


def _scalar_comparison(site: Site, node: ast.expr) -> bool:
    """A 0-dim tensor compared with something that came from a configuration."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    values = [site.value(node.left), site.value(node.comparators[0])]
    scalar = [value for value in values if value.is_single]
    other = [value for value in values if not value.is_single]
    return len(scalar) == 1 and all(value.is_python or value.origin is Origin.CONFIG for value in other)


def _comparison_call(site: Site, node: ast.expr) -> _Part | None:
    """`torch.equal(a, b)` and `torch.allclose(a, b)`, which return a Python bool."""
    if not isinstance(node, ast.Call) or len(node.args) != 2:
        return None
    qualified = site.resolve(node.func)
    left, right = node.args
    if qualified in {"torch.equal", "torch.allclose"}:
        for argument in node.args:
            if not isinstance(argument, (ast.Name, ast.Attribute)):
                verdict = purity.Verdict(impure=f"`{purity.short(argument)}` would be computed twice")
                return _Part("", "", "", verdict=verdict)
    if qualified == "torch.equal":
        text = f"({site.operand(left)} == {site.operand(right)}).all()"
        fact = f"{site.operand(left)}.shape == {site.operand(right)}.shape"
        return _Part(text, text, f"~{text}", facts=(fact,))
    if qualified == "torch.allclose":
        arguments = ", ".join(site.text(argument) for argument in [*node.args, *node.keywords])
        text = f"{site.torch}.isclose({arguments}).all()"
        return _Part(text, text, f"~{text}")
    return None


_OPPOSITES: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
}


def number_of(site: Site, node: ast.expr) -> ast.expr | None:
    """`t` for `t.item()`, `int(t)` and `float(t)`, where `t` is a 0-dim tensor."""
    inner = node
    while isinstance(inner, ast.Call) and not inner.keywords:
        if isinstance(inner.func, ast.Attribute) and inner.func.attr == "item" and not inner.args:
            inner = inner.func.value
        elif len(inner.args) == 1 and site.resolve(inner.func) in {"builtins.int", "builtins.float"}:
            inner = inner.args[0]
        else:
            break
    return inner if inner is not node and site.value(inner).is_single else None


def _numbers_compared(site: Site, node: ast.expr) -> _Part | None:
    """`t.item() != n`: the tensors themselves compare in the same way where they are integers."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _OPPOSITES:
        return None
    sides = (node.left, node.comparators[0])
    found = [number_of(site, side) for side in sides]
    if found == [None, None]:
        return None
    if any(site.value(inner).is_floating for inner in found if inner is not None):
        exact = isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        if not exact or not any(isinstance(side, ast.Constant) and side.value == 0 for side in sides):
            return None
    for inner, side in zip(found, sides, strict=True):
        if inner is None and site.value(side).kind is Kind.TENSOR and not site.value(side).is_single:
            return None
    left, right = (site.operand(inner or side) for inner, side in zip(found, sides, strict=True))
    sign, opposite = _OPPOSITES[type(node.ops[0])]
    text = f"{left} {sign} {right}"
    # A tensor and a number may compare in another precision than two numbers: eager mode keeps its own text.
    verdict = purity.Verdict(raises=f"`{purity.short(node)}` compares Python numbers")
    inverse = f"{left} {opposite} {right}"
    whole = all(site.value(inner).dtype in (BOOL, INT64) for inner in found if inner is not None)
    if not whole and sign not in {"==", "!="}:
        inverse = f"~({text})"  # nan is neither more nor less
    return _Part(text, f"({text})", inverse, verdict=verdict)
