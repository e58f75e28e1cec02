"""Tests that may decide by the elements of a tensor, where no rule knows enough to rewrite them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.patterns import asks_identity, is_name, is_not
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.reasons import cannot_infer_tensor
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.untraced.calls import ordered
from graphmend_codemod.rules.proofs.untraced.evidence import (
    assigned,
    is_given_to_forward,
    is_mask,
    is_registered,
    is_tensor_or_number,
)
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced

_REDUCES = frozenset("sum any all max min amax amin mean item".split())
_COMPARES = frozenset("equal allclose is_nonzero".split())
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_ANSWERS_OF_NUMPY = frozenset(
    "abs all allclose any array_equal isclose isfinite isinf isnan linalg.norm max mean min mod prod sum".split()
)


def tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if x.sum() == 0` where nothing tells what `x` is."""
    call = next((each for each in _deciding(test) if _may_read(site, each)), None)
    number = None
    if call is None:
        asked = (_searched, _number_tested, _buffer_tested, _tensor_tested, _numpy_tested, _ordered)
        number = next((found for ask in asked if (found := ask(site, test)) is not None), None)
    if call is None and number is None:
        return None
    value = site.value(test)
    if value.truth is not None or value.compiling is not None or reads_tensor(site, test):
        return None
    if call is None:
        return number
    if not isinstance(call.func, ast.Attribute):
        advice = "no rewrite for this test; manually compute both results and select with `torch.where`"
        return Untraced(test, "data-dependent branch on the elements of a tensor", advice)
    inner: ast.expr = call
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _REDUCES:
        inner = inner.func.value
    return Untraced(test, "may be a data-dependent branch", cannot_infer_tensor(site, inner))


def _searched(site: Site, test: ast.expr) -> Untraced | None:
    """`if 3 in ids`, where `ids` is a tensor, and `if label in known`, where `label` is one."""
    while is_not(test):
        test = test.operand
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.In, ast.NotIn)):
        return None
    if site.value(test.left).is_tensor:
        advice = "manually write `(tensor == value).any()`, or `torch.isin` for several values"
        return Untraced(test, "searches a list for a tensor (data-dependent branch)", advice)
    if not site.value(test.comparators[0]).is_tensor:
        return None
    return Untraced(
        test, "searches a tensor for a value (data-dependent branch)", "manually write `(tensor == value).any()`"
    )


def _number_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if left <= 0`, where `left` is an element of a list of tensors."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], _ORDERS):
        return None
    number, other = test.left, test.comparators[0]
    plain = isinstance(other, ast.Constant) and type(other.value) in {int, float}
    if not isinstance(number, ast.Name):
        return None
    either = is_tensor_or_number(site, number) and (plain or is_tensor_or_number(site, other))
    if not either and not (plain and may_be_tensor(site, number)):
        return None
    return Untraced(
        test,
        "may be a data-dependent branch",
        (
            f"`{number.id}` may be a tensor; "
            "manually compute both results and select with `torch.where`, or annotate it as a Python number"
        ),
    )


def _numpy_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if np.all(np.isfinite(x))`, whatever `x` is: what functions of NumPy return is a tensor to Dynamo."""
    for call in _deciding(test):
        called = site.resolve(call.func) or ""
        if called.rpartition(".")[0] == "numpy" and called.rpartition(".")[2] in _ANSWERS_OF_NUMPY and call.args:
            advice = "NumPy is traced as tensors; manually use `math` on Python numbers, or `torch.where` on tensors"
            return Untraced(test, "data-dependent branch on a result of NumPy", advice)
    return None


def _ordered(site: Site, test: ast.expr) -> Untraced | None:
    """`all(x < y for x, y in zip(times[:-1], times[1:]))`, where `times` is a tensor or may be one."""
    for call in _deciding(test):
        found = ordered(site, call, site.resolve(call.func))
        if found is not None:
            return found
    return None


def _buffer_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if self.started`, `if self.step % 100 == 0`, where that is a buffer."""
    while is_not(test):
        test = test.operand
    if isinstance(test, ast.BoolOp):
        return next((found for part in test.values if (found := _buffer_tested(site, part)) is not None), None)
    if isinstance(test, ast.Compare):
        orders = isinstance(test.ops[0], _ORDERS)
        sides = [part for side in (test.left, *test.comparators) for part in _operands(side)] if orders else []
        buffer = next((part for part in sides if is_registered(site, part)), None)
    else:
        buffer = test if is_registered(site, test) else None
    if buffer is None:
        return None
    name = speculation.short(buffer)
    advice = (
        f"`{name}` is a {_kind(site, buffer)}; "
        f"manually compare it (`{name} > 0`), so that a rule can select with `torch.where`, or keep a "
        "Python bool beside it"
    )
    if isinstance(test, ast.Compare):
        advice = f"`{name}` is a {_kind(site, buffer)}; manually keep a Python number beside it, and test that"
    return Untraced(test, "data-dependent branch", advice)


def _kind(site: Site, buffer: ast.expr) -> str:
    fact = site.evaluator.scope.attribute(buffer.attr) if isinstance(buffer, ast.Attribute) else None
    return AttributeKind.PARAMETER.value if fact and fact.kind is AttributeKind.PARAMETER else "buffer"


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    """The operands of arithmetic."""
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    else:
        yield node


def _tensor_tested(site: Site, test: ast.expr) -> Untraced | None:
    """`if mode:`, where its annotation says that it is a tensor."""
    while is_not(test):
        test = test.operand
    if not isinstance(test, ast.Name) or not site.value(test).is_tensor or site.value(test).optional:
        return None
    advice = (
        f"`{test.id}` is annotated as a tensor; manually pass a Python bool, "
        "or compute both results and select with `torch.where`"
    )
    return Untraced(test, "data-dependent branch", advice)


def _deciding(test: ast.expr) -> Iterator[ast.Call]:
    """The calls whose results decide a test."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _deciding(part)
    elif isinstance(test, ast.UnaryOp):
        yield from _deciding(test.operand)
    elif isinstance(test, ast.Compare):
        if not asks_identity(test):
            for part in (test.left, *test.comparators):
                yield from _deciding(part)
    elif isinstance(test, ast.Call):
        yield test


def asserted(site: Site, node: ast.Call) -> Untraced | None:
    """`torch._assert(x.sum() < limit, "message")`."""
    test = node.args[0] if node.args else None
    if test is None or not (site.value(test).is_tensor or reads_tensor(site, test) or tested(site, test) is not None):
        return None
    advice = "Dynamo asks for its value; manually write `torch._assert_async`"
    return Untraced(node, "asserts the elements of a tensor (device sync)", advice)


def _may_read(site: Site, call: ast.Call) -> bool:
    if site.resolve(call.func) in {"builtins.any", "builtins.all"} and len(call.args) == 1:
        return is_mask(site, call.args[0])
    if not isinstance(call.func, ast.Attribute) or site.resolve(call.func):
        return False
    if call.func.attr not in _REDUCES:
        return call.func.attr in _COMPARES and is_given_to_forward(site, call.func.value)
    return site.value(call.func.value).kind is ValueKind.UNKNOWN and site.value(call).kind is ValueKind.UNKNOWN


# Numbers that may be elements of tensors by way of a list: `left = [longest - v for v in lengths]` and then a loop

_AS_THEIR_ARGUMENTS = frozenset({"builtins.min", "builtins.max", "builtins.abs", "builtins.sum"})
_STEPS = 5


def may_be_tensor(site: Site, node: ast.expr, steps: int = _STEPS) -> bool:
    """True when one of the ways in which `node` gets its value makes it a tensor."""
    if site.value(node).is_tensor:
        return True
    if not steps:
        return False
    if isinstance(node, ast.BinOp):
        return may_be_tensor(site, node.left, steps - 1) or may_be_tensor(site, node.right, steps - 1)
    if isinstance(node, ast.Call):
        passes = site.resolve(node.func) in _AS_THEIR_ARGUMENTS
        return passes and any(may_be_tensor(site, argument, steps - 1) for argument in node.args)
    if not isinstance(node, ast.Name) or site.value(node).kind is not ValueKind.UNKNOWN:
        return False
    sources = [*assigned(site, node.id), *(_elements(site, node.id) if steps == _STEPS else ())]
    return any(may_be_tensor(site, source, steps - 1) for source in sources)


def _elements(site: Site, name: str) -> Iterator[ast.expr]:
    """What the elements are of lists that a loop goes through for `name`."""
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, ast.For):
            for target, iterated in in_step(node.target, node.iter, site.resolve):
                if is_name(target, name) and isinstance(iterated, ast.Name):
                    lists = assigned(site, iterated.id)
                    yield from (each.elt for each in lists if isinstance(each, (ast.ListComp, ast.GeneratorExp)))
