"""Python operands and bounds of random numbers that decide a test without its tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.aliasing import RANDOM, may_write
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import all_names, is_attribute, is_name, is_not, same
from graphmend_codemod.analysis.scope import FunctionNode, defaults_of, dotted, of_kind, walk, walk_scope
from graphmend_codemod.analysis.torch_api import RETURNS_TENSOR
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import known_flag, negated, reads_tensor
from graphmend_codemod.rules.proofs.conditions.random_draws import draw_of, is_draw
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.conditions.skipped_operands import of_some_element


class Decision(NamedTuple):
    """`asked` are Python conditions which together make `part` of a test come out as `outcome`.

    `part` is an operand of `around`, of an `and` where `outcome` is False, of an `or` where it is True; or the whole
    test; or neither, where `alone` is true, as in `not part`.
    """

    part: ast.expr
    asked: tuple[str, ...]
    outcome: bool
    around: ast.BoolOp | None = None
    alone: bool = False


_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip
_BELOW_0: dict[type[ast.cmpop], bool] = {ast.Lt: False, ast.GtE: True}
"""How a draw, which is never below 0, compares with 0 and less. `>` and `<=` depend on whether it is 0."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_MAY_BE_0 = "a random number may be 0, so a bound of 0 does not decide the test; manually test the bound first"
_BEFORE = "manually draw it before compiled code, and pass it in as a Python bool"
_NOT_TRACED = "Dynamo does not trace it; manually import `random` itself and draw with `random.random()`"


def decision(site: Site, test: ast.expr) -> Decision | str | None:
    """What decides a test, or a part of it, early; or the reason why nothing does; None where nothing is asked late."""
    whole = site.value(test)
    if whole.truth is not None or whole.compiling is not None:
        return None
    reasons: list[str] = []
    found = next(_found(site, test, None, reasons), None)
    return found or (reasons[0] if reasons else None)


def _found(site: Site, node: ast.expr, around: ast.expr | None, reasons: list[str]) -> Iterator[Decision]:
    if is_not(node):
        yield from _found(site, node.operand, node, reasons)
    elif isinstance(node, ast.BoolOp):
        if any(is_guard(site, each) for each in node.values):
            return
        yield from _by_operands(site, node)
        for each in node.values:
            yield from _found(site, each, node, reasons)
    elif isinstance(node, ast.Call):
        yield from _by_numbers(site, node, around, reasons)
    elif isinstance(node, ast.Compare) and (bound := _bound(site, node, reasons)) is not None:
        number, asked, outcome = bound
        if _asked_before(site, node, around, number):
            return
        fits = ast.Or if outcome else ast.And
        inside = around if isinstance(around, ast.BoolOp) and isinstance(around.op, fits) else None
        yield Decision(node, asked, outcome, around=inside, alone=around is not None and inside is None)


def _by_numbers(site: Site, node: ast.Call, around: ast.expr | None, reasons: list[str]) -> Iterator[Decision]:
    """`(np.array(x.shape[2:]) % 32 > 0).any()`, which the numbers of the array decide."""
    if "array" not in site.evaluator.scope.outline.words and "asarray" not in site.evaluator.scope.outline.words:
        return
    from graphmend_codemod.rules.proofs.sizes.array_tests import array_test  # a commit hook waits for it

    found = array_test(site, node)
    if isinstance(found, str):
        reasons.append(found)
    elif found is not None:
        fits = ast.Or if found[1] else ast.And
        inside = around if isinstance(around, ast.BoolOp) and isinstance(around.op, fits) else None
        yield Decision(node, *found, around=inside, alone=around is not None and inside is None)


def _asked_before(site: Site, node: ast.Compare, around: ast.expr | None, number: ast.expr) -> bool:
    """True where the number is known to be above 0, from an operand before this one or a statement around it."""
    operands = around.values if isinstance(around, ast.BoolOp) else []
    before = operands[: next((place for place, each in enumerate(operands) if each is node), 0)]
    tests = [parent.test for parent in site.place.parents if isinstance(parent, ast.If)]
    asked = [part for test in (*before, *tests) for part in _conjuncts(test)]
    return any(same(part, number) or _is_above_0(part, number) for part in asked)


def _is_above_0(test: ast.expr, number: ast.expr) -> bool:
    """True for `number > 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Gt):
        return False
    least = test.comparators[0]
    return (
        same(test.left, number)
        and isinstance(least, ast.Constant)
        and type(least.value) in (int, float)
        and not least.value
    )


def _conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for each in test.values:
            yield from _conjuncts(each)
    else:
        yield test


def is_guarded(site: Site, test: ast.expr) -> bool:
    """True for a test, a part of which is decided early under torch.compile where Python knows it."""
    boolean = [part for part in ast.walk(test) if isinstance(part, ast.BoolOp)]
    return any(is_guard(site, each) for part in boolean for each in part.values)


def is_guard(site: Site, node: ast.expr) -> bool:
    """True for `not (torch.compiler.is_compiling() and ...)` and for what it denies: the rule has been here before."""
    inner = node.operand if is_not(node) else node
    return isinstance(inner, (ast.BoolOp, ast.Call)) and site.value(inner).compiling is not None


def _by_operands(site: Site, node: ast.BoolOp) -> Iterator[Decision]:
    """`x.any() and self.flag`: Python operands behind one that reads a tensor."""
    outcome = isinstance(node.op, ast.Or)
    first = next((number for number, each in enumerate(node.values) if not _is_python(site, each)), len(node.values))
    enough: list[str] = []
    asked: list[str] = []
    tensors: dict[str, None] = {}
    elements: dict[str, None] = {}
    for number, operand in enumerate(node.values[first:], first):
        if number > first and (flag := flag_text(site, operand, outcome)) is not None:
            if not _never(site, operand, outcome):
                enough.append(flag)
                # What comes behind the last of them is asked neither before nor after.
                asked = [f"isinstance({name}, {site.torch}.Tensor)" for name in tensors]
                asked += [f"{name}.numel() > 0" for name in elements]
            continue
        skipped = _without_effects(site, operand)
        if skipped is None:
            break
        tensors |= dict.fromkeys(skipped)
        elements |= dict.fromkeys(of_some_element(operand))
    if enough and _reads_something(site, node.values[first]):
        text = enough[0] if len(enough) == 1 else f"({' or '.join(enough)})"
        yield Decision(node.values[first], (*asked, text), outcome, around=node)


def _never(site: Site, node: ast.expr, outcome: bool) -> bool:
    """True where asking first removes no break: a constant of the other outcome, or what the loop around counts.

    A test of what a loop counts is decided in its last round, and the tensor has broken the graph before.
    """
    known, scope = known_flag(site, node), site.evaluator.scope
    inner = node.operand if is_not(node) else node
    if is_attribute(inner, scope.self_name):
        return known is not None and known is not outcome
    loops = [each for each in (*site.place.parents, site.place.statement) if isinstance(each, _LOOPS)]
    read = all_names(node)
    stored = (part.id for loop in loops for part in of_kind(walk(loop), ast.Name) if not isinstance(part.ctx, ast.Load))
    return not read.isdisjoint(stored)


def _reads_something(site: Site, node: ast.expr) -> bool:
    """True for an operand that reads a tensor, or may: a reduction of what nothing is known about."""
    if reads_tensor(site, node):
        return True
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    return any(part.func.attr in _REDUCES for part in calls)  # type: ignore[attr-defined]


_REDUCES = frozenset({"any", "all", "sum", "max", "min", "amax", "amin", "mean", "item", "norm"})


def flag_text(site: Site, node: ast.expr, outcome: bool) -> str | None:
    """The condition that a Python operand comes out as `outcome`, if it may be asked at any time."""
    if is_plain(site, node):
        return site.operand_of_and(node) if outcome else negated(site, node)
    if is_not(node):
        node, outcome = node.operand, not outcome
    if not isinstance(node, ast.Name) or site.value(node).kind is not ValueKind.UNKNOWN or site.judge(node).raises:
        return None
    return f"{node.id} is True" if outcome else f"({node.id} is None or {node.id} is False)"


def _is_python(site: Site, node: ast.expr) -> bool:
    """True for what certainly reads no tensor."""
    if isinstance(node, ast.BoolOp):
        return all(_is_python(site, each) for each in node.values)
    if isinstance(node, ast.UnaryOp):
        return _is_python(site, node.operand)
    value = site.value(node)
    return not reads_tensor(site, node) and (value.is_python or _is_flag(site, node))


def is_plain(site: Site, node: ast.expr) -> bool:
    """True for Python that may be asked at any time: a flag, `is None`, a comparison of numbers with a literal."""
    if isinstance(node, ast.BoolOp):
        return all(is_plain(site, each) for each in node.values)
    if is_not(node):
        return is_plain(site, node.operand)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if {type(each) for each in node.ops} <= {ast.Is, ast.IsNot}:
            return all(isinstance(side, ast.Constant) or _is_bound(site, side) for side in sides)
        return _is_python(site, node) and all(isinstance(side, ast.Constant) or _is_flag(site, side) for side in sides)
    return _is_flag(site, node)


def _is_bound(site: Site, node: ast.expr) -> bool:
    """True for a name or an attribute of the instance that may be read at any time."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if own and node.value.id != site.evaluator.scope.self_name:  # type: ignore[attr-defined]
        return False
    hazards = site.judge(node)
    return (own or isinstance(node, ast.Name)) and hazards.impure is None and hazards.raises is None


def _is_flag(site: Site, node: ast.expr) -> bool:
    """A name or an attribute of the instance that Python alone tells, and that is certainly bound."""
    if not _is_bound(site, node) or acts(site, node) is not None:
        return False
    value = site.value(node)
    return (
        value.is_python if isinstance(node, ast.Name) else value.kind is not ValueKind.TENSOR and value.callee is None
    )


def _without_effects(site: Site, node: ast.expr) -> list[str] | None:
    """Names that have to be tensors for an operand to do nothing but read them; None where it may do more."""
    if _is_python(site, node) and is_plain(site, node):
        return []
    if acts(site, node) is not None:
        return None
    found: dict[str, None] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name, given = site.operation(part)
            name = "sum" if name == "item" and len(given) == 1 else name
            method = len(given) > len(part.args)
            if name not in RETURNS_TENSOR or name in RANDOM or may_write(name, part, method=method):
                return None
        elif not isinstance(part, _READS):
            return None
        elif isinstance(part, (ast.Name, ast.Attribute)) and not _is_inner(part, node) and not _is_known(site, part):
            spelled = dotted(part)
            if spelled is None:
                return None
            found[spelled] = None
    return list(found)


_READS = (
    ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Subscript, ast.Slice,
    ast.Tuple, ast.keyword, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop,
)  # fmt: skip


def _is_inner(part: ast.expr, whole: ast.expr) -> bool:
    """True for what is only the beginning of a longer chain, or the name of what is called."""
    for node in ast.walk(whole):
        if isinstance(node, ast.Attribute) and node.value is part:
            return True
        if isinstance(node, ast.Call) and node.func is part:
            return True
    return False


def _is_known(site: Site, node: ast.expr) -> bool:
    value = site.value(node)
    return value.is_python or (value.is_tensor and not value.hint) or site.resolve(node) is not None


def _bound(site: Site, node: ast.Compare, reasons: list[str]) -> tuple[ast.expr, tuple[str, ...], bool] | None:
    """The number that a draw is compared with, the conditions on it and the draw that decide; then the outcome."""
    if len(node.ops) != 1 or type(node.ops[0]) not in _MIRRORED:
        return None
    order, draw, number = type(node.ops[0]), node.left, node.comparators[0]
    if not is_draw(site, draw):
        order, draw, number = _MIRRORED[order], number, draw
        if not is_draw(site, draw):
            return None
    if isinstance(number, ast.Constant) or not is_number(site, number):
        return None
    if order not in _BELOW_0:
        reasons.append(_MAY_BE_0)
        return None
    text = site.text(number)
    text = f"{text if isinstance(number, (ast.Name, ast.Attribute)) else f'({text})'} <= 0"
    made = draw_of(site, draw)
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and site.resolve(made.func) == "random.random":
        reasons.append(_NOT_TRACED)
        return None
    if made is not None and is_usually_above_0(site, number):
        reasons.append(f"`{text.removesuffix(' <= 0')}` is above 0 by default, so the draw decides; {_BEFORE}")
        return None
    # A number is drawn, whatever decides: who draws next must get what it gets in eager mode.
    asked = (text,) if made is None else (text, f"{_drawn(site, made)} is not None")
    return number, asked, _BELOW_0[order]


def _drawn(site: Site, draw: ast.expr) -> str:
    """The draw in a form that Dynamo traces."""
    called = draw.func if isinstance(draw, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr == "random":
        return f"{site.text(called.value)}.uniform(0.0, 1.0)"
    return site.text(draw)


def is_number(site: Site, node: ast.expr) -> bool:
    """True for what may be a Python number, and reads nothing but names and attributes."""
    if isinstance(node, ast.BinOp):
        return is_number(site, node.left) and is_number(site, node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    return dotted(node) is not None and site.value(node).kind is not ValueKind.TENSOR


def only_tested(site: Site, name: str) -> bool:
    """True for a local name that is read in tests alone, so that True and False do for a tensor."""
    tested: set[int] = set()
    for node in walk_scope(site.evaluator.scope.node):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            tested |= {id(part) for part in truth_of(node.test)}
    read = [part for part in walk_scope(site.evaluator.scope.node) if is_name(part, name)]
    loads = [part for part in read if isinstance(part.ctx, ast.Load)]
    return bool(loads) and all(id(part) in tested for part in loads)


def truth_of(test: ast.expr) -> Iterator[ast.expr]:
    """The expressions of a test of which only the truth counts."""
    yield test
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from truth_of(each)
    elif is_not(test):
        yield from truth_of(test.operand)


# What a number usually is: the default of the parameter that it comes from, in a signature or in a constructor


def is_usually_above_0(site: Site, node: ast.expr) -> bool:
    """True for a parameter, or an attribute that the constructor takes from one, whose default is above 0."""
    scope = site.evaluator.scope
    if isinstance(node, ast.Name):
        return _default(scope.node, node.id) > 0
    if not isinstance(node, ast.Attribute) or not is_attribute(node, scope.self_name or "", node.attr):
        return False
    made = _constructor(site)
    given = [
        each.value
        for each in of_kind(ast.walk(made or scope.node), ast.Assign)
        if any(_is_own(made, target, node.attr) for target in each.targets)
    ]
    return made is not None and len(given) == 1 and isinstance(given[0], ast.Name) and _default(made, given[0].id) > 0


def _is_own(made: FunctionNode | None, target: ast.expr, name: str) -> bool:
    return made is not None and bool(made.args.args) and is_attribute(target, made.args.args[0].arg, name)


def _default(function: FunctionNode, name: str) -> float:
    """The number that is a parameter's default; 0 where it has none."""
    found = next((default for each, default in defaults_of(function) if each.arg == name), None)
    value = found.value if isinstance(found, ast.Constant) else None
    return value if isinstance(value, (int, float)) else 0


def _constructor(site: Site) -> FunctionNode | None:
    """The `__init__` of the class around the site, if that stands in the same file."""
    owner = site.function.rpartition(".")[0]
    classes = (each for each in tree_of(site.source.text).body if isinstance(each, ast.ClassDef) and each.name == owner)
    for each in classes:
        for part in each.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                return part
    return None
