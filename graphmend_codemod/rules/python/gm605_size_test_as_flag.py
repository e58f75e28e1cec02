"""size-test-as-flag (GM605): a test of a size is handed to attention as its flag `is_causal`.

`scaled_dot_product_attention(q, k, v, is_causal=n > 1)` is traced as long as `n` is one number. As soon as sizes are
dynamic, which they are from the second length on, `n > 1` is a symbol and no bool: the call raises a TypeError while it
is traced, and the graph breaks there. `True if n > 1 else False` asks for the answer while tracing. That is what the
compile path does; eager mode has the test itself.

Only tests of a size against 0 and 1 are written so: Dynamo compiles those lengths on their own anyway. Any other one
would tie the graph to a range of lengths, which a size that was marked as dynamic must not be. Operands that are no
comparisons, as in `self.causal and n > 1`, are asked to be bools in the header, since the call refuses what is none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import is_name, is_shape, is_size
from graphmend_codemod.analysis.scope import of_kind, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import Origin, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged, line_of, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site

rule = Rule(__name__, __doc__, title="answer a size's test while tracing", contract=Contract(cost=Cost.NONE))

_FLAG = "is_causal"
_IDENTITY = (ast.Is, ast.IsNot)
_FALSE_FROM_TWO, _TRUE_FROM_TWO = (ast.Eq, ast.Lt, ast.LtE), (ast.NotEq, ast.Gt, ast.GtE)


@rule.on(ast.Assign, ast.Return, ast.Expr, words=(_FLAG, "scaled_dot_product_attention"))
def test_as_flag(site: Site, node: ast.Assign | ast.Return | ast.Expr) -> Diagnostic | None:
    """`attention(q, k, v, is_causal=n > 1)`, and `is_causal = n > 1` where that is handed on."""
    if node.value is None:
        return None
    tests = [
        word.value
        for part in of_kind(walk_in_layers(node.value), ast.Call)
        for word in part.keywords
        if word.arg == _FLAG
    ]
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        tests += [node.value] if _is_handed_on(site, node.targets[0].id) else []
    tests = [test for test in tests if any(_of_sizes(site, part) for part in _results(test))]
    if not tests:
        return None
    return judged(f"tests a size for the flag `{_FLAG}`: `{short(tests[0])}`", lambda: _answered(site, node, tests))


def _answered(site: Site, node: ast.Assign | ast.Return | ast.Expr, tests: list[ast.expr]) -> Edit:
    conditions = dict.fromkeys(each for test in tests for each in _asked(site, test))
    texts = {id(test): (test, f"True if {_one_line(site, test)} else False") for test in tests}
    line = line_of(site.but(written=texts), node)
    return two_paths(site, node, [site.compiling, *conditions], [line])


def _one_line(site: Site, test: ast.expr) -> str:
    text = site.text(test)
    return ast.unparse(test) if "\n" in text else text


def _is_handed_on(site: Site, name: str) -> bool:
    """Whether a call of the function has the name as its flag."""
    return any(
        word.arg == _FLAG and is_name(word.value, name)
        for part in of_kind(walk_scope(site.evaluator.scope.node), ast.Call)
        for word in part.keywords
    )


def _results(test: ast.expr) -> Iterator[ast.Compare]:
    """The comparisons that may be what the test gives for a size of two and more; of others Dynamo asks the truth."""
    if isinstance(test, ast.Compare):
        yield test
    elif isinstance(test, ast.BoolOp):
        yield from _results(test.values[-1])
        decide = _FALSE_FROM_TWO if isinstance(test.op, ast.And) else _TRUE_FROM_TWO
        for each in test.values[:-1]:
            if isinstance(each, ast.Compare) and isinstance(each.ops[0], decide):
                yield each


def _of_sizes(site: Site, test: ast.Compare) -> bool:
    return any(
        is_size(each) or (site.value(each).is_python and site.value(each).origin is Origin.SHAPE)
        for each in (test.left, *test.comparators)
    )


def _is_plain(site: Site, node: ast.expr) -> bool:
    """A size of a tensor as it is, or a name that holds nothing else in the function: not `n // 2`."""
    if not isinstance(node, ast.Name):
        return is_size(node)
    stores = sum(
        is_name(part, node.id) and isinstance(part.ctx, ast.Store) for part in walk_scope(site.evaluator.scope.node)
    )
    plain = 0
    for part in walk_scope(site.evaluator.scope.node):
        for target in part.targets if isinstance(part, ast.Assign) else ():
            if isinstance(target, ast.Name):
                plain += target.id == node.id and is_size(part.value)  # type: ignore[attr-defined]
            elif isinstance(target, ast.Tuple) and is_shape(part.value):  # type: ignore[attr-defined]
                plain += sum(is_name(each, node.id) for each in target.elts)
    return 0 < stores == plain


def _asked(site: Site, test: ast.expr) -> Iterator[str]:
    """What must hold for the test to be a bool, and for its answer to be one that all lengths from two on share."""
    for each in _results(test):
        if _of_sizes(site, each) and not _splits_at_one(site, each):
            raise NotProven(f"`{short(each)}` would tie the graph to a range of lengths")
    yield from _bools(site, test)


def _bools(site: Site, test: ast.expr) -> Iterator[str]:
    match test:
        case ast.BoolOp():
            for each in test.values:
                yield from _bools(site, each)
        case ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return
        case ast.Compare():
            identity = all(isinstance(each, _IDENTITY) for each in test.ops)
            if not identity and any(
                site.value(each).kind is ValueKind.TENSOR for each in (test.left, *test.comparators)
            ):
                raise NotProven(f"`{short(test)}` may be a tensor; manually read it before")
        case ast.Name() | ast.Attribute() if site.value(test).kind is not ValueKind.TENSOR:
            yield f"isinstance({site.text(test)}, bool)"
        case _:
            raise NotProven(f"`{short(test)}` may be no bool; manually write `bool({short(test)})`")


def _splits_at_one(site: Site, test: ast.Compare) -> bool:
    """`n > 1`, `1 < n`, `n >= 2`: all sizes from two on answer alike, and Dynamo has graphs of their own for others."""
    sides, sign = (test.left, test.comparators[0]), test.ops[0]
    size, literal = sides if isinstance(sides[1], ast.Constant) else sides[::-1]
    if len(test.ops) != 1 or not isinstance(literal, ast.Constant) or not _is_plain(site, size):
        return False
    if type(literal.value) is not int or isinstance(sign, (ast.In, ast.NotIn, *_IDENTITY)):
        return False
    at_two = (ast.GtE, ast.Lt) if literal is sides[1] else (ast.LtE, ast.Gt)
    return literal.value in (0, 1) or (literal.value == 2 and isinstance(sign, at_two))
