"""Tests that read a tensor's value: which part is static, and the tensor expression that decides."""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.hazards import FREE, Hazards
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.narrowing import narrow
from graphmend_codemod.analysis.patterns import asks_identity, is_not, operands_of
from graphmend_codemod.analysis.scope import walk
from graphmend_codemod.analysis.values import BOOL, SCALAR, Origin, ValueKind, is_bool_or_byte
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import (
    OPPOSITES,
    Part,
    comparison_call,
    elements_asked,
    has_one_element,
    is_registered,
    numbers_compared,
    unfit,
)
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.conditions.skipped_operands import asked_earlier, tested, unwrapped, where_skipped

_LOOSE = (ast.Compare, ast.BoolOp, ast.Not, ast.IfExp, ast.Lambda, ast.NamedExpr)
"""Operands that keep their brackets: `(a > 0) != True`."""
_NOT_IDENTICAL: dict[type[ast.cmpop], str] = {ast.Is: "is not", ast.IsNot: "is"}


class Condition(NamedTuple):
    """A test split in two: `static` conjuncts come first and are Python; `tensors` decide at run time.

    `text` is an expression for one 0-dim bool tensor that is true exactly when all tensor conjuncts are; `inverse` the
    same for its negation. `facts` are trace-time conditions that must hold for `text` to be that expression. `several`
    names a part that may hold more than one element, None if none may. `hazards` judges the parts that Python's `and`
    and `or` would have skipped. `choice` is `text` for a select: 0-dim whatever has one element.
    `skipped` says why a part that eager mode may skip may raise, for those who have to know; `if_skipped` are the facts
    among `facts` under which such a part does not raise. `again` says which static part may not be asked twice: by the
    header of a compile path, and by the statement behind it. `hazards` has it, too; `once` is the hazards without it.
    """

    static: tuple[ast.expr, ...]
    tensors: tuple[ast.expr, ...]
    text: str
    inverse: str
    several: str | None
    hazards: Hazards
    facts: tuple[str, ...] = ()
    choice: str = ""
    skipped: str | None = None
    if_skipped: frozenset[str] = frozenset()
    again: str | None = None
    once: Hazards = FREE


def reads_tensor(site: Site, node: ast.expr) -> bool:
    """True when the truth value of `node` comes from a tensor's elements."""
    if isinstance(node, ast.BoolOp):
        return any(reads_tensor(site, operand) for operand in node.values)
    if is_not(node):
        return reads_tensor(site, node.operand)
    if isinstance(node, ast.Constant) or (isinstance(node, ast.Compare) and asks_identity(node)):
        return False
    if isinstance(node, ast.Compare) and numbers_compared(site, node) is not None:
        return True
    if isinstance(node, ast.Call) and comparison_call(site, node) is not None:
        return True
    inner = tested(site, node)
    if isinstance(inner, ast.Call) and elements_asked(site, inner) is not None:
        return True
    value = site.value(inner)
    if isinstance(inner, (ast.Name, ast.Attribute)) and value.kind is ValueKind.TENSOR:
        # `if output_attentions:` with a wrong annotation is common; a real tensor of several elements would raise.
        return value.shape == SCALAR or is_bool_or_byte(value.dtype) or is_registered(site, inner)
    return value.kind is ValueKind.TENSOR


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
    conjuncts = operands_of(test, ast.And)
    static = tuple(operand for operand in conjuncts if not reads_tensor(site, operand))
    tensors = tuple(operand for operand in conjuncts if reads_tensor(site, operand))
    env = dict(site.place.env)
    for operand in static:
        narrow(site.evaluator, operand, True, env)
    parts = [_part(site, operand, env) for operand in tensors]
    text = " & ".join(part.text if len(parts) == 1 else part.tight for part in parts)
    inverse = parts[0].inverse if len(parts) == 1 else f"~({text})"
    hazards = asked_earlier(site, conjuncts, static)
    for part in parts:
        hazards = hazards & part.hazards
    if (bound := next((each for each in ast.walk(test) if isinstance(each, ast.NamedExpr)), None)) is not None:
        # What a header asks of it, it would ask before it is bound.
        why = f"`{speculation.short(bound)}` binds a name in the test; assign it before the `if`"
        hazards = hazards & Hazards(impure=why)
    facts = [fact for part in parts for fact in part.facts]
    skipped = [fact for part in parts for fact in part.if_skipped]
    raises = next((part.skipped for part in parts if part.skipped), None)
    for operand, part in zip(tensors[1:], parts[1:], strict=True):
        found = where_skipped(site, operand, env)
        hazards, raises = hazards & found.hazards, raises or found.raises
        skipped += [*found.facts, *part.single]
    several = next((part.several for part in parts if part.several), None)
    chosen = text
    if any(part.any_shape for part in parts):
        # Raises, as eager mode does, where there is more than one element, or none.
        chosen = f"{parts[0].tight if len(parts) == 1 else f'({text})'}.reshape(())"
    once, only = hazards._replace(finite=True), frozenset(skipped) - set(facts)
    again = next((reason for each in static if (reason := acts(site, each)) is not None), None)
    hazards = once & Hazards(impure=again)
    needs = (*facts, *skipped)
    return Condition(static, tensors, text, inverse, several, hazards, needs, chosen, raises, only, again, once)


def combines(condition: Condition) -> bool:
    """True when several tensors decide. A single one may have any shape: `_assert_async` takes what `if` would take."""
    return len(condition.tensors) > 1 or any(
        isinstance(node, ast.BoolOp) or (isinstance(node, ast.Compare) and len(node.ops) > 1)
        for node in walk(condition.tensors[0])
    )


def is_traced_assertion(site: Site, node: ast.Assert, condition: Condition) -> bool:
    """True for `assert t, "text"` of one tensor: Dynamo itself makes a check on the device of it."""
    tensors = all(site.value(tensor).kind is ValueKind.TENSOR for tensor in condition.tensors)
    plain = tensors and len(condition.tensors) == 1 and not condition.facts and not combines(condition)
    return plain and (node.msg is None or (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str)))


def fails_early(test: ast.expr, sign: type[ast.boolop]) -> bool:
    """True where what Python skips in a test is skipped only because the check has failed already.

    Such a check fails whatever is skipped: with an exception of its own, or with one from what eager mode skips, as
    from the truth of several elements. `sign` is what fails at once: `ast.And` where the test is asserted, `ast.Or`
    where it raises.
    """
    if is_not(test):
        return fails_early(test.operand, ast.Or if sign is ast.And else ast.And)
    if isinstance(test, ast.BoolOp):
        return isinstance(test.op, sign) and all(fails_early(operand, sign) for operand in test.values)
    return sign is ast.And or not isinstance(test, ast.Compare) or len(test.ops) == 1


def _part(site: Site, node: ast.expr, env: Env) -> Part:
    if is_not(node):
        return _part(site, node.operand, env).inverted
    if isinstance(node, ast.BoolOp):
        return _connective(site, node, env)
    call = comparison_call(site, node) or elements_asked(site, unwrapped(site, node))
    if call is not None:
        return call
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return _chain(site, node, env)
    numbers = numbers_compared(site, node)
    if numbers is not None:
        return numbers
    return _leaf(site, tested(site, node))


def _chain(site: Site, node: ast.Compare, env: Env) -> Part:
    """`a <= b <= c`, which Python joins with `and`, and where `b` is computed once: here the compiler sees to that."""
    sides = [node.left, *node.comparators]
    hazards = FREE
    for middle in sides[1:-1]:
        if site.judge(unwrapped(site, middle)).impure is not None:
            impure = f"`{speculation.short(middle)}` would be computed twice; assign it to a variable first"
            hazards = hazards & Hazards(impure=impure)
    texts: list[str] = []
    several, any_shape, if_skipped, skipped = None, False, list[str](), None
    for left, sign, right in zip(sides, node.ops, sides[1:], strict=False):
        if type(sign) not in OPPOSITES:
            return unfit(f"`{speculation.short(node)}` asks for more than order; split it")
        text = f"{site.operand(left)} {OPPOSITES[type(sign)][0]} {site.operand(right)}"
        texts.append(f"({text})")
        one = all(site.value(side).is_python or site.value(side).is_single for side in (left, right))
        if not one:
            several, any_shape = several or text, True
        if len(texts) > 1:
            raises = None if one else f"`{text}` may have more than one element"
            found = where_skipped(site, right, env)
            hazards, skipped = hazards & found.hazards, skipped or found.raises or raises
            if_skipped += found.facts
    text = " & ".join(texts)
    return Part(text, f"({text})", f"~({text})", several, hazards, (), any_shape, skipped, tuple(if_skipped))


def _connective(site: Site, node: ast.BoolOp, env: Env) -> Part:
    """`a.any() or b.any()`. What reads no tensor becomes a fact that leaves the tensors to decide."""
    parts, hazards, if_skipped, skipped = list[Part](), FREE, list[str](), None
    facts: list[str] = []
    env = dict(env)
    for operand in node.values:
        if not reads_tensor(site, operand):
            hazards = hazards & _asked_at_once(site, operand, env, late=bool(parts))
            if known_flag(site, operand) is isinstance(node.op, ast.Or):
                why = f"`{site.text(operand)}` decides the test alone, as the class sets it"
                hazards = hazards & Hazards(impure=why)
            narrow(site.evaluator, operand, isinstance(node.op, ast.And), env)
            facts.append(site.operand_of_and(operand) if isinstance(node.op, ast.And) else negated(site, operand))
            continue
        part = _part(site, operand, env)
        if parts:
            found = where_skipped(site, operand, env)
            hazards, skipped = hazards & found.hazards, skipped or found.raises
            if_skipped += [*found.facts, *part.single]
        parts.append(part)
    for part in parts:
        skipped = skipped or part.skipped
        hazards = hazards & part.hazards
        facts += part.facts
        if_skipped += part.if_skipped
    sign = " | " if isinstance(node.op, ast.Or) else " & "
    text = parts[0].text if len(parts) == 1 else sign.join(part.tight for part in parts)
    several = next((part.several for part in parts if part.several), None)
    any_shape = any(part.any_shape for part in parts)
    if len(parts) == 1:
        return parts[0]._replace(hazards=hazards, facts=tuple(facts), skipped=skipped, if_skipped=tuple(if_skipped))
    single = tuple(fact for part in parts for fact in part.single)
    return Part(
        text, f"({text})", f"~({text})", several, hazards, tuple(facts), any_shape, skipped, tuple(if_skipped), single
    )


def known_flag(site: Site, node: ast.expr) -> bool | None:
    """What `self.flag` or `not self.flag` is where the class sets the flag to one constant; None where it may vary."""
    inner = node.operand if is_not(node) else node
    scope = site.evaluator.scope
    if not isinstance(inner, ast.Attribute) or not isinstance(inner.value, ast.Name):
        return None
    fact = scope.attribute(inner.attr) if inner.value.id == scope.self_name else None
    known = {"True": True, "False": False}.get(fact.text) if fact is not None else None
    return known if known is None or inner is node else not known


def _asked_at_once(site: Site, operand: ast.expr, env: Env, *, late: bool) -> Hazards:
    """What asking a Python operand while tracing means; behind a tensor (`late`), eager mode may not ask it at all."""
    hazards = speculation.judge(site.evaluator, operand, env)
    if hazards.impure is not None or (late and hazards.raises is not None):
        why = f"`{site.text(operand)}` is asked with a tensor and may have side effects or raise; use nested `if`s"
        return Hazards(impure=why)
    again = acts(site, operand)
    return FREE if again is None else Hazards(impure=again)


def negated(site: Site, node: ast.expr) -> str:
    """The opposite of a Python operand, as an operand of `and`."""
    if is_not(node):
        return site.operand_of_and(node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NOT_IDENTICAL:
        sign = _NOT_IDENTICAL[type(node.ops[0])]
        return f"{site.operand(node.left)} {sign} {site.operand(node.comparators[0])}"
    text = site.text(node)
    return f"not {text}" if isinstance(node, (ast.Name, ast.Attribute, ast.Call)) else f"not ({text})"


def _leaf(site: Site, node: ast.expr) -> Part:
    value = site.value(node)
    several = None
    if not (value.is_single or _scalar_comparison(site, node) or (value.shape == SCALAR and value.optional)):
        several = site.text(node)
    text = site.text(node)
    tight = site.operand(node)
    any_shape = not _is_zero_dim(site, node)
    single = () if several is None else (has_one_element(site, node),)
    if value.dtype == BOOL:
        return Part(text, tight, _opposite(site, node) or f"~{tight}", several, any_shape=any_shape, single=single)
    return Part(f"{tight} != 0", f"({tight} != 0)", f"{tight} == 0", several, any_shape=any_shape, single=single)


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
