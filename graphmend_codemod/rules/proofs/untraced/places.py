"""Where a function may hold something that Dynamo cannot trace: looked for once, judged statement by statement."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.outline import Outline
from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_within
from graphmend_codemod.analysis.scope import children
from graphmend_codemod.project.summary.candidates import (
    ANSWERS,
    COMPILED,
    FOREIGN_NAMES,
    GRIDS,
    GUESSED,
    UNKNOWN_AS_NUMPY,
    UNKNOWN_TO_TORCH,
    is_named_recurrent,
)
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.untraceable_calls import NAMES, refused_layer
from graphmend_codemod.rules.proofs.untraced.arrays import HISTORY, asked_for_history, asked_of_array, grid
from graphmend_codemod.rules.proofs.untraced.calls import CALLS, FINDS, READS, RESHAPES, SIZED, sized
from graphmend_codemod.rules.proofs.untraced.guessed_breaks import NUMBERS, guessed_size, seeming
from graphmend_codemod.rules.proofs.untraced.kinds import Ask, Untraced
from graphmend_codemod.rules.proofs.untraced.layers import LAYERS
from graphmend_codemod.rules.proofs.untraced.numbers_listed import made_of_list
from graphmend_codemod.rules.proofs.untraced.subscripts import chosen, chosen_anywhere, cut
from graphmend_codemod.rules.proofs.untraced.tests import tested

_CALLED = (
    NAMES
    | UNKNOWN_TO_TORCH
    | FINDS
    | ANSWERS
    | READS.keys()
    | SIZED
    | RESHAPES
    | GUESSED
    | frozenset(
        "int float bool range pad interpolate topk zip all any requires_grad_ repeat_interleave generate_state "
        "map sorted filter reduce max min apply split tensor_split str repr _assert new".split()
    )
)
_ALL = frozenset({"all", "any"})
_KEYWORDS = frozenset({"requires_grad", "generator"})
_MODULES = frozenset("math scipy special stats signal ndimage spatial".split()) | COMPILED
_OF_NUMPY = frozenset({"np", "numpy"})
_PARTS_OF_NUMPY = frozenset({"random", "polynomial"})
_HEADS = ("test", "iter", "items", "subject")


class Suspects(NamedTuple):
    """What one look at a function leaves to be judged: calls and subscripts in order of the source."""

    places: list[tuple[int, int]]
    nodes: list[ast.expr]

    def of(self, statement: ast.stmt) -> list[ast.expr]:
        """Those that the statement evaluates itself."""
        body = [each.pattern for each in statement.cases] if isinstance(statement, ast.Match) else None
        body = body or getattr(statement, "body", None)
        last = (statement.end_lineno or 0, statement.end_col_offset or 0)
        end = (body[0].lineno, body[0].col_offset) if body else last
        first = bisect_left(self.places, (statement.lineno, statement.col_offset))
        return self.nodes[first : bisect_left(self.places, end, lo=first)]


def suspects(site: Site) -> Suspects:
    """The suspects of the function, looked for once."""
    return site.remembered("untraced", site.evaluator.scope.node, lambda: _suspects(site), anywhere=True)


def _suspects(site: Site) -> Suspects:
    nodes = sorted(_in_outline(site.evaluator.scope.outline), key=lambda node: (node.lineno, node.col_offset))
    return Suspects([(node.lineno, node.col_offset) for node in nodes], nodes)


def lines(outline: Outline) -> list[int]:
    """The lines where suspects begin."""
    return [node.lineno for node in _in_outline(outline)]


def _in_outline(outline: Outline) -> list[ast.expr]:
    found: list[ast.expr] | None = outline.notes.get("untraced")
    if found is None:
        chosen = [node for node in outline.subscripts if not _is_plain(node.slice) or _is_grid(node)]
        suspects = _any_layer if any(map(is_named_recurrent, outline.words)) else _is_suspect
        if FOREIGN_NAMES in outline.notes:
            suspects = _any_call
        rest = [*chosen, *_filters(outline), *outline.decisions]
        numpy = not _OF_NUMPY.isdisjoint(outline.words)
        rest += [each for each in outline.asked if numpy or each.attr == HISTORY]
        found = outline.notes["untraced"] = [*filter(suspects, outline.calls), *rest]
    return found


def _is_grid(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Attribute) and node.value.attr in GRIDS


def _any_layer(call: ast.Call) -> bool:
    """Suspects where something is named as recurrent layers are: `for layer in self.rnns` calls one as `layer`."""
    asks = isinstance(call.func, ast.Attribute) and is_attribute(call.func.value, "self")
    return _is_suspect(call) or asks or isinstance(call.func, (ast.Name, ast.Subscript))


def _any_call(call: ast.Call) -> bool:
    """Suspects where the file imports something that Dynamo does not trace: it may be called by any name."""
    own = is_attribute(call.func, "self")
    return not (own and call.keywords) or _is_suspect(call)


def _filters(outline: Outline) -> list[ast.expr]:
    """The conditions of comprehensions."""
    return [test for each in outline.comprehensions for test in each.ifs]


def _is_plain(index: ast.expr) -> bool:
    """True for an index or slice of nothing but constants, as in `x[:, None, -1]`."""
    kind = index.__class__
    if kind is ast.Constant:
        return True
    if kind is ast.Tuple:
        return all(map(_is_plain, index.elts))  # type: ignore[attr-defined]
    if kind is ast.Slice:
        bounds = (index.lower, index.upper, index.step)  # type: ignore[attr-defined]
        return all(bound is None or _is_plain(bound) for bound in bounds)
    return kind is ast.UnaryOp and index.operand.__class__ is ast.Constant  # type: ignore[attr-defined]


def _is_suspect(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        name = function.id
        return (name in _CALLED and (name not in _ALL or _is_comprehension(call))) or name[:1].isupper()
    if not isinstance(function, ast.Attribute):
        return False
    name = function.attr
    if is_name(function.value, "self"):
        return not call.keywords  # a recurrent layer, for all that one sees
    if any(word.arg in _KEYWORDS for word in call.keywords):
        return True
    if any(word.arg in NUMBERS and word.value.__class__ is not ast.Constant for word in call.keywords):
        return True
    return name in _CALLED or name[:1].isupper() or (name == "where" and len(call.args) == 1) or _of_module(function)


def _is_comprehension(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], (ast.GeneratorExp, ast.ListComp))


def _of_module(function: ast.Attribute) -> bool:
    """True for functions of `math`, of modules of SciPy, and of those modules of NumPy that Dynamo does not trace."""
    owner = function.value
    if function.attr in UNKNOWN_AS_NUMPY:
        return isinstance(owner, ast.Name) and owner.id in _OF_NUMPY
    while isinstance(owner, ast.Attribute):
        if owner.attr in _PARTS_OF_NUMPY:
            return True
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in _MODULES


def evaluated(site: Site, statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions that a statement evaluates while torch.compile traces, without those of statements inside it."""
    if hasattr(statement, "body") or isinstance(statement, ast.Match):
        heads = [getattr(statement, field, None) for field in _HEADS]
        stack = [each for head in heads for each in (head if isinstance(head, list) else [head]) if each is not None]
    else:
        stack = children(statement)
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.IfExp):
            compiling = site.value(node.test).compiling
            stack += [each for each, dead in ((node.body, False), (node.orelse, True)) if compiling is not dead]
            stack.append(node.test)
        elif isinstance(node, ast.BoolOp):
            decided = isinstance(node.op, ast.Or)
            truths = [site.value(each).compiling is decided for each in node.values]
            stack += node.values[: truths.index(True) + 1] if True in truths else node.values
        elif not isinstance(node, ast.Lambda):
            stack += children(node)


def _is_harmless_layer(site: Site, function: ast.expr) -> bool:
    """True for most of `self.layer(x)`, by far the most common call: no kind of break needs to be asked for."""
    if not is_attribute(function, site.evaluator.scope.self_name) or function.attr in _CALLED:
        return False
    made = site.value(function).instance_of
    if is_named_recurrent(function.attr) or is_named_recurrent((made or "").rpartition(".")[2]):
        return False
    return torch_api.torch_module_class(made) not in LAYERS and refused_layer(made or "") is None


def break_at(site: Site, node: ast.expr) -> Untraced | None:
    """What cannot be traced of a call or a subscript: several rules ask for it."""
    return site.remembered(f"break at {site.place.statement.lineno}", node, lambda: break_among(site, node, CALLS))


def read_at(site: Site, node: ast.expr) -> Untraced | None:
    """What breaks the graph at a call or a subscript, and what does once numbers are symbols of the graph."""
    return break_at(site, node) or guessed_size(site, node) or made_of_list(site, node)


def break_among(site: Site, node: ast.expr, calls: Sequence[Ask]) -> Untraced | None:
    """What cannot be traced of a call or a subscript, where only these kinds of calls are asked for, in order."""
    if isinstance(node, (ast.BoolOp, ast.Compare, ast.UnaryOp)):
        return decided(site, node)
    if isinstance(node, ast.Attribute):
        return asked_for_history(site, node) or asked_of_array(site, node)
    if isinstance(node, ast.Subscript):
        return grid(site, node) or chosen(site, node) or chosen_anywhere(site, node) or cut(site, node)
    if not isinstance(node, ast.Call) or _is_harmless_layer(site, node.func):
        return None
    called = site.resolve(node.func)
    if called is None and isinstance(node.func, ast.Attribute) and node.func.attr in RESHAPES:
        calls = (sized,)  # nothing else is called so
    for kind in calls:
        each = kind(site, node, called)
        if each is not None:
            return each
    return None


# `and`, `or`, `not` and chained comparisons outside of tests: operands become Python bools all the same

_BRANCHES = (ast.If, ast.While, ast.Assert)


def decided(site: Site, node: ast.BoolOp | ast.Compare | ast.UnaryOp) -> Untraced | None:
    """`ok = (x > 0).all() and (y > 0).all()`, `0 < x.sum() < 1`, `empty = not mask.any()`.

    What a test of its own decides by has rules.
    """
    statement = site.place.statement
    if isinstance(statement, _BRANCHES) or any(is_within(node, each) for each in _tests(site, statement)):
        return None
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return None
    way_out = "combine tensors with `&`"
    if isinstance(node, ast.BoolOp):
        deciding: list[ast.expr] = node.values[:-1]
        way_out = way_out if isinstance(node.op, ast.And) else "combine tensors with `|`"
    elif isinstance(node, ast.UnaryOp):
        deciding, way_out = [node.operand], "write `torch.logical_not(...)`"
    else:
        deciding = [ast.copy_location(ast.Compare(node.left, node.ops[:1], node.comparators[:1]), node)]
    for each in deciding:
        found = tested(site, each) or seeming(site, each)
        if found is not None or reads_tensor(site, each):
            advice = f"`{speculation.short(each)}` is a tensor, or may be one; manually {way_out}"
            return Untraced(node, "converts a tensor to a Python bool (data-dependent branch)", advice)
    return None


def _tests(site: Site, statement: ast.stmt) -> list[ast.expr]:
    """The conditions of conditional expressions and comprehensions, which are judged as such."""
    found = [each.test for each in ast.walk(statement) if isinstance(each, ast.IfExp)]
    return [*found, *(test for each in site.evaluator.scope.outline.comprehensions for test in each.ifs)]
