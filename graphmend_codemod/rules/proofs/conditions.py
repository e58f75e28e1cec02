"""Tests that read a tensor's value: which part is static, and the tensor expression that decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.narrowing import narrow
from graphmend_codemod.analysis.patterns import asks_identity
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, INT64, SCALAR, Kind, Origin, is_bool_or_byte
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.skipped_operands import asked_earlier, unwrapped, where_skipped

_LOOSE = (ast.Compare, ast.BoolOp, ast.Not, ast.IfExp, ast.Lambda, ast.NamedExpr)
"""Operands that keep their brackets: `(a > 0) != True`."""


class Condition(NamedTuple):
    """A test split in two: `static` conjuncts come first and are Python; `tensors` decide at run time.

    `text` is an expression for one 0-dim bool tensor that is true exactly when all tensor conjuncts are; `inverse` the
    same for its negation. `facts` are trace-time conditions that must hold for `text` to be that expression. `several`
    names a part that may hold more than one element, None if none may. `verdict` judges the parts that Python's `and`
    and `or` would have skipped. `choice` is `text` for a select: 0-dim whatever has one element.
    `skipped` says why a part that eager mode may skip may raise, for those who have to know; `if_skipped` are the facts
    among `facts` under which such a part does not raise.
    """

    static: tuple[ast.expr, ...]
    tensors: tuple[ast.expr, ...]
    text: str
    inverse: str
    several: str | None
    verdict: speculation.Verdict
    facts: tuple[str, ...] = ()
    choice: str = ""
    skipped: str | None = None
    if_skipped: frozenset[str] = frozenset()


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
    inner = unwrapped(site, node)
    value = site.value(inner)
    if isinstance(inner, (ast.Name, ast.Attribute)) and value.kind is Kind.TENSOR:
        # `if output_attentions:` with a wrong annotation is common; a real tensor of several elements would raise.
        return value.shape == SCALAR or is_bool_or_byte(value.dtype) or is_registered(site, inner)
    return value.kind is Kind.TENSOR


def is_registered(site: Site, node: ast.expr) -> bool:
    """True for a buffer or parameter of the instance: nothing else is registered as one."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if not own or node.value.id != site.evaluator.scope.self_name:  # type: ignore[attr-defined]
        return False
    fact = site.evaluator.scope.attribute(node.attr)  # type: ignore[attr-defined]
    return fact is not None and fact.kind in {AttributeKind.BUFFER, AttributeKind.PARAMETER}


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
    env = dict(site.place.env)
    for operand in static:
        narrow(site.evaluator, operand, True, env)
    parts = [_part(site, operand, env) for operand in tensors]
    text = " & ".join(part.text if len(parts) == 1 else part.tight for part in parts)
    inverse = parts[0].inverse if len(parts) == 1 else f"~({text})"
    verdict = asked_earlier(site, conjuncts, static)
    for part in parts:
        verdict = verdict & part.verdict
    if (bound := next((each for each in ast.walk(test) if isinstance(each, ast.NamedExpr)), None)) is not None:
        # What a header asks of it, it would ask before it is bound.
        why = f"`{speculation.short(bound)}` binds a name in the test; assign it before the `if`"
        verdict = verdict & speculation.Verdict(impure=why)
    facts = [fact for part in parts for fact in part.facts]
    skipped = [fact for part in parts for fact in part.if_skipped]
    raises = next((part.skipped for part in parts if part.skipped), None)
    for operand in tensors[1:]:
        found = where_skipped(site, operand, env)
        verdict, raises = verdict & found.verdict, raises or found.raises
        skipped += found.facts
    several = next((part.several for part in parts if part.several), None)
    chosen = text
    if any(part.any_shape for part in parts):
        # Raises, as eager mode does, where there is more than one element, or none.
        chosen = f"{parts[0].tight if len(parts) == 1 else f'({text})'}.reshape(())"
    verdict, only = verdict._replace(finite=True), frozenset(skipped) - set(facts)
    return Condition(
        static, tensors, text, inverse, several, verdict, (*facts, *skipped), chosen, raises, if_skipped=only
    )


def fails_early(test: ast.expr, sign: type[ast.boolop]) -> bool:
    """True where what Python skips in a test is skipped only because the check has failed already.

    Such a check fails whatever is skipped: with an exception of its own, or with one from what eager mode skips, as
    from the truth of several elements. `sign` is what fails at once: `ast.And` where the test is asserted, `ast.Or`
    where it raises.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return fails_early(test.operand, ast.Or if sign is ast.And else ast.And)
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, sign) and all(fails_early(operand, sign) for operand in test.values)
    return sign is ast.And or not isinstance(test, ast.Compare) or len(test.ops) == 1


class _Part(NamedTuple):
    text: str
    tight: str
    inverse: str
    several: str | None = None
    verdict: speculation.Verdict = speculation.FREE
    facts: tuple[str, ...] = ()
    any_shape: bool = False
    skipped: str | None = None
    if_skipped: tuple[str, ...] = ()

    @property
    def inverted(self) -> _Part:
        """The part for the negated test."""
        tight = self.inverse if self.inverse.startswith("~") else f"({self.inverse})"
        return self._replace(text=self.inverse, tight=tight, inverse=self.text)


def _part(site: Site, node: ast.expr, env: Env) -> _Part:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _part(site, node.operand, env).inverted
    if isinstance(node, ast.BoolOp):
        return _connective(site, node, env)
    call = _comparison_call(site, node)
    if call is not None:
        return call
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return _chain(site, node, env)
    numbers = _numbers_compared(site, node)
    if numbers is not None:
        return numbers
    return _leaf(site, unwrapped(site, node))


def _chain(site: Site, node: ast.Compare, env: Env) -> _Part:
    """`a <= b <= c`, which Python joins with `and`, and where `b` is computed once: here the compiler sees to that."""
    sides = [node.left, *node.comparators]
    verdict = speculation.FREE
    for middle in sides[1:-1]:
        if site.judge(unwrapped(site, middle)).impure is not None:
            impure = f"`{speculation.short(middle)}` would be computed twice; assign it to a variable first"
            verdict = verdict & speculation.Verdict(impure=impure)
    texts: list[str] = []
    several, any_shape, if_skipped, skipped = None, False, list[str](), None
    for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
        if type(sign) not in _OPPOSITES:
            impure = f"`{speculation.short(node)}` asks for more than order; split it"
            return _Part("", "", "", verdict=speculation.Verdict(impure=impure))
        text = f"{site.operand(left)} {_OPPOSITES[type(sign)][0]} {site.operand(right)}"
        texts.append(f"({text})")
        one = all(site.value(side).is_python or site.value(side).is_single for side in (left, right))
        if not one:
            several, any_shape = several or text, True
        if len(texts) > 1:
            raises = None if one else f"`{text}` may have more than one element"
            found = where_skipped(site, right, env)
            verdict, skipped = verdict & found.verdict, skipped or found.raises or raises
            if_skipped += found.facts
    text = " & ".join(texts)
    return _Part(text, f"({text})", f"~({text})", several, verdict, (), any_shape, skipped, tuple(if_skipped))


def _connective(site: Site, node: ast.BoolOp, env: Env) -> _Part:
    parts, verdict, if_skipped, skipped = [], speculation.FREE, list[str](), None
    for position, operand in enumerate(node.values):
        if not reads_tensor(site, operand):
            verdict = verdict & speculation.Verdict(
                impure=f"`{site.text(operand)}` is combined with a tensor by `or`; use `|` or nested `if`s"
            )
            continue
        parts.append(_part(site, operand, env))
        if position:
            found = where_skipped(site, operand, env)
            verdict, skipped = verdict & found.verdict, skipped or found.raises
            if_skipped += found.facts
    facts = tuple(fact for part in parts for fact in part.facts)
    for part in parts:
        skipped = skipped or part.skipped
        verdict = verdict & part.verdict
        if_skipped += part.if_skipped
    sign = " | " if isinstance(node.op, ast.Or) else " & "
    text = sign.join(part.tight for part in parts)
    several = next((part.several for part in parts if part.several), None)
    any_shape = any(part.any_shape for part in parts)
    return _Part(text, f"({text})", f"~({text})", several, verdict, facts, any_shape, skipped, tuple(if_skipped))


def _leaf(site: Site, node: ast.expr) -> _Part:
    value = site.value(node)
    several = None
    if not (value.is_single or _scalar_comparison(site, node) or (value.shape == SCALAR and value.optional)):
        several = site.text(node)
    text = site.text(node)
    tight = site.operand(node)
    any_shape = not _is_zero_dim(site, node)
    if value.dtype == BOOL:
        return _Part(text, tight, _opposite(site, node) or f"~{tight}", several, any_shape=any_shape)
    return _Part(f"{tight} != 0", f"({tight} != 0)", f"{tight} == 0", several, any_shape=any_shape)


def _is_zero_dim(site: Site, node: ast.expr) -> bool:
    """A 0-dim tensor, or one compared with a literal or with another one, whatever callers pass."""
    if isinstance(node, ast.Compare):
        return all(_is_zero_dim(site, side) or _is_literal(side) for side in (node.left, *node.comparators))
    return site.value(node).is_single


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _opposite(site: Site, node: ast.expr) -> str | None:
    """`a != b` for `a == b` and the other way round; other comparisons have no opposite where nan may occur."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return None
    sign = "!=" if isinstance(node.ops[0], ast.Eq) else "=="
    left, right = (
        site.operand(side)
        if isinstance(getattr(side, "op", side), _LOOSE) or isinstance(side, _LOOSE)
        else site.text(side)
        for side in (node.left, node.comparators[0])
    )
    return f"{left} {sign} {right}"


def _scalar_comparison(site: Site, node: ast.expr) -> bool:
    """A 0-dim tensor compared with something that came from a configuration."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    values = [site.value(node.left), site.value(node.comparators[0])]
    scalar = [value for value in values if value.is_single]
    other = [value for value in values if not value.is_single]
    return len(scalar) == 1 and all(value.is_python or value.origin is Origin.CONFIG for value in other)


_ARGUMENTS = {"equal": 2, "allclose": 2, "is_nonzero": 1}


def _predicate(site: Site, node: ast.Call) -> tuple[str, list[ast.expr]] | None:
    """`equal`, `allclose` or `is_nonzero` with the tensors that it takes, as a function of torch or as a method."""
    if isinstance(node.func, (ast.Name, ast.Attribute)) and (name := torch_function(site.resolve(node.func))):
        arguments = list(node.args)
    elif isinstance(node.func, ast.Attribute) and site.value(node.func.value).kind is Kind.TENSOR:
        name, arguments = node.func.attr, [node.func.value, *node.args]
    else:
        return None
    wanted = _ARGUMENTS.get(name)
    return (name, arguments) if wanted is not None and len(arguments) >= wanted else None


def _comparison_call(site: Site, node: ast.expr) -> _Part | None:
    """`torch.equal(a, b)`, `torch.allclose(a, b)` and `torch.is_nonzero(a)`, which return a Python bool."""
    found = _predicate(site, node) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or found is None or any(isinstance(part, ast.Starred) for part in node.args):
        return None
    name, arguments = found
    tensors = arguments[: _ARGUMENTS[name]]
    if name == "is_nonzero":
        tensor = site.operand(tensors[0])
        any_shape = not site.value(tensors[0]).is_single
        return _Part(f"{tensor} != 0", f"({tensor} != 0)", f"{tensor} == 0", any_shape=any_shape)
    if name == "equal":
        for argument in tensors:
            if not isinstance(argument, (ast.Name, ast.Attribute)):
                verdict = speculation.Verdict(
                    impure=f"`{speculation.short(argument)}` would be computed twice; assign it to a variable first"
                )
                return _Part("", "", "", verdict=verdict)
        left, right = (site.operand(tensor) for tensor in tensors)
        text = f"({left} == {right}).all()"
        return _Part(text, text, f"~{text}", facts=(f"{left}.shape == {right}.shape",))
    rest = [site.text(argument) for argument in [*arguments, *node.keywords]]
    text = f"{site.torch}.isclose({', '.join(rest)}).all()"
    return _Part(text, text, f"~{text}")


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
    known = site.value(inner).is_single or is_registered(site, inner)
    return inner if inner is not node and known else None


def _numbers_compared(site: Site, node: ast.expr) -> _Part | None:
    """`t.item() != n`: the tensors themselves compare in the same way where they are integers."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _OPPOSITES:
        return None
    sides = (node.left, node.comparators[0])
    found = [number_of(site, side) for side in sides]
    if found == [None, None]:
        return None
    flags = [inner for inner in found if inner is not None and not site.value(inner).is_single]
    if flags and not any(isinstance(side, ast.Constant) and side.value in range(128) for side in sides):
        return None  # what a buffer of unknown dtype may not hold exactly
    if any(site.value(inner).is_floating for inner in found if inner is not None):
        exact = isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        if not exact or not any(isinstance(side, ast.Constant) and side.value == 0 for side in sides):
            return None
    for inner, side in zip(found, sides, strict=True):
        if inner is None and site.value(side).kind is Kind.TENSOR and not site.value(side).is_single:
            return None
    facts: list[str] = []
    for inner, side in zip(found, sides, strict=True):
        fact = _whole_number(site, side, inner) if inner is not None else ""
        if fact is None:
            impure = f"`{speculation.short(side)}` truncates to an integer, and its dtype is unknown"
            return _Part("", "", "", verdict=speculation.Verdict(impure=impure))
        facts += [fact] if fact else []
    left, right = (site.operand(inner or side) for inner, side in zip(found, sides, strict=True))
    sign, opposite = _OPPOSITES[type(node.ops[0])]
    text = f"{left} {sign} {right}"
    # A tensor and a number may compare in another precision than two numbers: eager mode keeps its own text.
    verdict = speculation.Verdict(raises=f"`{speculation.short(node)}` compares Python numbers")
    inverse = f"{left} {opposite} {right}"
    whole = all(site.value(inner).dtype in (BOOL, INT64) for inner in found if inner is not None)
    if not whole and sign not in {"==", "!="}:
        inverse = f"~({text})"  # nan is neither more nor less
    return _Part(text, f"({text})", inverse, verdict=verdict, facts=tuple(facts), any_shape=bool(flags))


def _whole_number(site: Site, side: ast.expr, inner: ast.expr) -> str | None:
    """The trace-time condition under which `int(t)` is the number in `t`, empty if it always is, None if none is known.

    An integer dtype is asked of what `max` and `min` were taken of.
    """
    if not any(
        isinstance(part, ast.Call) and site.resolve(part.func) == "builtins.int" for part in _calls(side, inner)
    ):
        return ""
    source: ast.expr = inner
    called = inner.func if isinstance(inner, ast.Call) and not inner.args and not inner.keywords else None
    if isinstance(called, ast.Attribute) and called.attr in {"sum", "max", "min", "amax", "amin"}:
        source = called.value
    dtypes = {site.value(inner).dtype or "", site.value(source).dtype or ""}
    if any(dtype == BOOL or dtype.startswith(("torch.int", "torch.uint")) for dtype in dtypes):
        return ""
    root = source
    while isinstance(root, ast.Attribute):
        root = root.value
    return f"not {site.text(source)}.is_floating_point()" if isinstance(root, ast.Name) else None


def _calls(side: ast.expr, inner: ast.expr) -> Iterator[ast.expr]:
    """The calls around `inner` that make a number of it."""
    while side is not inner and isinstance(side, ast.Call):
        yield side
        side = side.func.value if isinstance(side.func, ast.Attribute) else side.args[0]
