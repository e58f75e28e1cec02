"""Classes that are written out and cut to a known number: `F.one_hot(t, max(t.max() + 1, n))[..., :n]`."""

from __future__ import annotations

import ast
from collections import Counter

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_constant, is_target, same
from graphmend_codemod.analysis.scope import dotted, of_kind, parameter_names, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm, tensor_asked

_LARGEST = frozenset({"max", "amax"})
_SMALLEST = -(10**9)


def cut_to_classes(site: Site, statement: ast.stmt, node: ast.Subscript, call: ast.Call) -> FixedForm | None:
    """`(t.unsqueeze(-1) == torch.arange(m)).long()` for `F.one_hot(t, max(t.max() + 1, m))[..., :m]`."""
    classes = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "num_classes")]
    if torch_api.torch_function(site.resolve(call.func)) != "one_hot" or not call.args or len(classes) != 1:
        return None
    earlier: list[ast.stmt] = []
    number = _given(site, classes[0], earlier)
    if not isinstance(number, ast.Call) or site.resolve(number.func) != "builtins.max" or len(number.args) != 2:
        return None
    index = call.args[0]
    bound = _cut(node)
    largest = [each for each in number.args if bound is None or ast.dump(each) != ast.dump(bound)]
    if bound is None or len(largest) != 1 or dotted(bound) is None or dotted(index) is None:
        raise NotProven("its result is not cut to the number of classes that is known: `[..., :classes]`")
    if _above(site, largest[0], index, earlier) < 1:
        raise NotProven(f"cannot infer that `{short(largest[0])}` is larger than all of `{short(index)}`")
    if earlier:
        _demand_same(site, statement, min(earlier, key=lambda each: each.lineno), index, bound)
    t, m = site.text(index), site.text(bound)
    conditions = [*tensor_asked(site, index), f"{t}.dtype == {site.torch}.int64", f"{t}.numel() > 0"]
    conditions += [f"isinstance({m}, int)", f"{m} >= 0"]
    text = f"({t}.unsqueeze(-1) == {site.torch}.arange({m}, device={t}.device)).to({site.torch}.int64)"
    return FixedForm(node, text, tuple(conditions))


def _cut(node: ast.Subscript) -> ast.expr | None:
    """`m` for `x[..., :m]`."""
    parts = elements_of(node.slice)
    last = parts[-1]
    whole = isinstance(last, ast.Slice) and last.lower is None and last.step is None
    rest = [part for part in parts[:-1] if not is_constant(part, ...)]
    return last.upper if whole and len(parts) == 2 and not rest else None  # type: ignore[attr-defined]


def _demand_same(site: Site, statement: ast.stmt, first: ast.stmt, index: ast.expr, bound: ast.expr) -> None:
    """NotProven where a tensor or the bound of its classes may change from one statement up to another."""
    from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write
    from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import stays

    if isinstance(bound, ast.Attribute) and not stays(site, dotted(bound) or ""):
        raise NotProven(f"`{short(bound)}` may change before the operator runs; assign it to a variable first")
    demand_no_write(site, first, {dotted(index) or ""}, set(), [statement])


def _given(site: Site, node: ast.expr, earlier: list[ast.stmt]) -> ast.expr:
    """What a name holds, where one statement of the function's own body gives it that, of names that stay.

    That statement is added to `earlier`.
    """
    function = site.evaluator.scope.node
    if not isinstance(node, ast.Name):
        return node
    names = of_kind(walk_scope(function), ast.Name)
    bound = Counter(part.id for part in names if not isinstance(part.ctx, ast.Load))
    above = (each for each in of_kind(function.body, ast.Assign) if each.lineno < node.lineno)
    made = [each for each in above if is_target(each, node.id)]
    if len(made) != 1 or bound[node.id] != 1:
        return node
    bound.update(parameter_names(function))
    if any(bound[name] > 1 for name in all_names(made[0].value)):
        return node
    earlier.append(made[0])
    return made[0].value


def _above(site: Site, node: ast.expr, index: ast.expr, earlier: list[ast.stmt]) -> int:
    """By how much a number is certainly larger than all elements of a tensor."""
    node = _given(site, node, earlier)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, ast.Constant) and type(one.value) is int and one.value >= 0:
                return one.value + _above(site, other, index, earlier)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LARGEST:
        name = torch_api.torch_function(site.resolve(node.func))
        given = [node.func.value, *node.args] if name is None else node.args
        if len(given) == 1 and not node.keywords and same(given[0], index):
            return 0
    return _SMALLEST
