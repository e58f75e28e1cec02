"""Constants made to require a gradient while `forward` runs: `total = torch.tensor(0.0, requires_grad=True)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.aliasing import FRESH, of_operator, operands
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.gradients import set_by_statement
from graphmend_codemod.analysis.patterns import (
    is_attribute,
    is_name,
    last_name,
    mentions,
    reads_name,
    rebinds,
    values_assigned,
)
from graphmend_codemod.analysis.scope import dotted, of_kind, parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import blocks_of

_LIKE = frozenset({"zeros_like", "ones_like", "full_like"})
_CREATES = _LIKE | {"tensor", "zeros", "ones", "full"}
_TOLD_BY = frozenset({"device", "dtype"})
_OF_LEAVES = frozenset(
    {"grad", "is_leaf", "grad_fn", "retain_grad", "register_hook", "requires_grad_", "requires_grad"}
)
_COMMENT = "# No elements of `{0}`: the sum is 0, and what it is added to requires a gradient."


def constant_leaf(site: Site, node: ast.Assign) -> ast.Call | None:
    """The call in `total = torch.tensor(0.0, requires_grad=True)`; None where there is none."""
    call = node.value
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name) or not isinstance(call, ast.Call):
        return None
    flagged = any(_is_flag(site, word) for word in call.keywords)
    return call if flagged and torch_function(site.resolve(call.func)) in _CREATES else None


def _is_flag(site: Site, word: ast.keyword) -> bool:
    """True for `requires_grad=True`, and for what has to be True while tracing.

    That is a local, `self.training`, or the `x.requires_grad` of a tensor.
    """
    value, scope = word.value, site.evaluator.scope
    local = isinstance(value, ast.Name) and scope.is_local(value.id)
    of_tensor = isinstance(value, ast.Attribute) and value.attr == "requires_grad" and dotted(value) is not None
    plain = local or of_tensor or _is_true(value) or is_attribute(value, scope.self_name, "training")
    return plain and word.arg == "requires_grad"


def made_of_no_elements(site: Site, node: ast.Assign, call: ast.Call) -> Edit:
    """The statement with a sum of no elements in place of the flag, if compiled; NotProven with the reason."""
    target = node.targets[0]
    assert isinstance(target, ast.Name)
    for part in walk(site.evaluator.scope.node):
        if (use := _of_leaf(part, target.id)) is not None:
            raise NotProven(f"`{short(use)}` needs a leaf; manually make it without `requires_grad`")
    name = target.id
    _demand_not_kept(site, node, name)
    conditions, x = _conditions(site, call, off=_is_only_computed_with(site, name))
    flags = [word.value for word in call.keywords if word.arg == "requires_grad"]
    asked = [each for each in flags if not _is_true(each) and site.text(each) not in conditions]
    conditions[1:1] = [f"{site.text(each)} is True" for each in asked]
    arguments = [*call.args, *(word for word in call.keywords if word.arg != "requires_grad")]
    lines = [
        f"{name} = {site.text(call.func)}({', '.join(site.text(each) for each in arguments)})",
        _COMMENT.format(x),
        f"{name}.add_({x}.flatten()[:0].sum().to({name}.device))",
    ]
    return two_paths(site, node, conditions, lines)


def leaf_made(site: Site, node: ast.Assign | ast.Return) -> ast.Call | None:
    """The call `torch.zeros_like(x)` in `return torch.zeros_like(x).requires_grad_()`; None where there is none."""
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "requires_grad_":
        return None
    made = call.func.value
    plain = not call.keywords and (not call.args or _is_true(call.args[0])) and len(call.args) < 2
    # With a dtype or a device of its own the sum would have another one.
    if not plain or not isinstance(made, ast.Call) or made.keywords:
        return None
    if torch_function(site.resolve(made.func)) not in _LIKE:
        return None
    named = isinstance(node, ast.Return) or (len(node.targets) == 1 and isinstance(node.targets[0], ast.Name))
    return made if named else None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def kept_in_the_graph(site: Site, node: ast.Assign | ast.Return, made: ast.Call) -> Edit:
    """The statement with a sum of no elements for `requires_grad_()`, if compiled; NotProven with the reason."""
    for part in walk(tree_of(site.source.text)):
        if isinstance(part, ast.Attribute) and part.attr in _OF_LEAVES - {"requires_grad", "requires_grad_"}:
            raise NotProven(f"`{short(part)}` in this file may need a leaf; manually leave `requires_grad_()` out")
    if isinstance(node, ast.Assign):
        assert isinstance(node.targets[0], ast.Name)
        name = node.targets[0].id
        uses = (part for part in walk(site.evaluator.scope.node) if part is not node.value)
        if (use := next((each for each in uses if _of_leaf(each, name) is not None), None)) is not None:
            raise NotProven(f"`{short(use)}` needs a leaf; manually make it without `requires_grad`")
        _demand_not_kept(site, node, name)
    conditions, x = _conditions(site, made)
    begins = "return" if isinstance(node, ast.Return) else f"{site.text(node.targets[0])} ="
    value = f"{begins} {site.text(made)} + {x}.flatten()[:0].sum()"
    return two_paths(site, node, conditions, [_COMMENT.format(x), value])


def _demand_not_kept(site: Site, node: ast.Assign, name: str) -> None:
    """NotProven where the leaf itself is kept: whoever finds it there may ask it for its gradient."""
    kept = where_kept(site, node, name)
    if kept is not None:
        raise NotProven(
            f"`{short(kept)}` keeps it, and others may ask that for a leaf; manually keep `{name}.detach()`"
        )


def _conditions(site: Site, call: ast.Call, *, off: bool = False) -> tuple[list[str], str]:
    """What has to hold for a tensor named in the call to bring its gradient, and that tensor.

    With `off`, gradients may also be off as a whole: then nothing that is computed with the leaf requires one.
    """
    tensor = next((each for each in _tensors(site, call) if not site.value(each).is_python), None)
    if tensor is None:
        raise NotProven(
            "no tensor that may require a gradient is named in it; manually make it without `requires_grad`, "
            "or pass `device=x.device` of one"
        )
    x = site.text(tensor)
    enabled = f"{site.torch}.is_grad_enabled()"
    gradient = [f"({x}.requires_grad or not {enabled})"] if off else [f"{x}.requires_grad", enabled]
    return [site.compiling, f"isinstance({x}, {site.torch}.Tensor)", f"{x}.is_floating_point()", *gradient], x


def _is_only_computed_with(site: Site, name: str) -> bool:
    """True where each use of a leaf makes a new tensor, so that nobody sees its own flag while gradients are off."""
    scope = site.evaluator.scope.node
    if set_by_statement(site.source.text) or any(isinstance(part, (ast.With, ast.AsyncWith)) for part in walk(scope)):
        return False  # gradients may be on again where it is used
    uses = sum(reads_name(part, name) for part in walk(scope))
    return uses == sum(_computes_with(site, part, name) for part in walk_scope(scope))


def _computes_with(site: Site, part: ast.AST, name: str) -> int:
    """How often an expression takes the leaf itself and gives memory of its own."""

    def is_leaf(each: ast.expr) -> bool:
        return is_name(each, name)

    if isinstance(part, ast.BinOp):
        return is_leaf(part.left) + is_leaf(part.right)
    if not isinstance(part, ast.Call):
        return 0
    function = part.func
    if isinstance(function, ast.Attribute) and is_leaf(function.value):
        called, receiver = function.attr, function.value
    else:
        called, receiver = torch_function(site.resolve(function)) or "", None
    effect = of_operator(called, part, receiver)
    if called not in FRESH or not effect.pure or effect.shares:
        return 0
    return sum(map(is_leaf, operands(part, receiver)))


def _of_leaf(part: ast.AST, name: str) -> ast.AST | None:
    """What only a leaf can be used for, or raises for a leaf, where it is done to a name."""
    if isinstance(part, ast.AugAssign):
        return part if is_name(part.target, name) else None
    if is_attribute(part, name):
        return part if part.attr in _OF_LEAVES or part.attr.endswith("_") else None
    if isinstance(part, ast.Call) and (dotted(part.func) or "").rpartition(".")[2] in {"grad", "backward"}:
        return part if mentions(part, name) else None
    return None


def _tensors(site: Site, call: ast.Call) -> Iterator[ast.expr]:
    """What the call takes device, dtype or size of, or gives to a function that does."""
    for word in call.keywords:
        told = _assigned_once(site, word.value) if isinstance(word.value, ast.Name) else word.value
        if isinstance(told, ast.Attribute) and told.attr in _TOLD_BY and dotted(told.value):
            yield told.value
        elif word.arg is None and isinstance(word.value, ast.Call) and len(word.value.args) == 1:
            yield from (each for each in word.value.args if isinstance(each, ast.Name))
    if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_like"):
        yield from (each for each in call.args[:1] if dotted(each))


def _assigned_once(site: Site, name: ast.Name) -> ast.expr | None:
    """The `x.device` of a parameter `x`, where `device = x.device` binds the name, and `x` stays bound."""
    scope, nodes = site.evaluator.scope.node, list(walk_scope(site.evaluator.scope.node))
    bound = values_assigned(scope, name.id)
    value = bound[0] if len(bound) == 1 else None
    owner = value.value if isinstance(value, ast.Attribute) else None
    if not isinstance(owner, ast.Name) or all(each.arg != owner.id for each in parameters(scope)):
        return None
    gone = any(isinstance(each, (ast.Delete, ast.ExceptHandler)) and rebinds(each, owner.id) for each in nodes)
    return None if gone else value


# Where a function keeps a tensor that it made: in an attribute, a container or a global name

_PUT_INTO = frozenset("append appendleft extend insert setdefault update".split())
_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.NamedExpr, ast.Starred, ast.keyword)


def where_kept(site: Site, node: ast.Assign, name: str) -> ast.AST | None:
    """The first place at which what an assignment gives a name is kept, and not what is computed of it; None if none.

    It is also kept where a function of the module that gets it does so, or where it may be this one or another.
    """
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None:
        return None
    blocks = blocks_of(calls, function)
    held = {name}
    for part in sorted(walk_scope(function.node), key=lambda each: getattr(each, "lineno", 0)):
        if not isinstance(part, (ast.Assign, ast.NamedExpr, ast.Call)) or part.lineno < node.lineno:
            continue
        for kept in _kept(calls, function, part):
            if kept not in held:
                continue
            bound = blocks.bindings_before(blocks.statement_of(part), kept) if kept == name else None
            if bound is None or any(each is None or each.lineno == node.lineno for each in bound):
                targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", part)]
                plain = [each.id for each in targets if isinstance(each, ast.Name)]
                globals_ = {one for each in of_kind(walk_scope(function.node), ast.Global) for one in each.names}
                if isinstance(part, ast.Call) or len(plain) < len(targets) or not globals_.isdisjoint(plain):
                    return part
                held |= set(plain)
    return None


def _kept(calls: ModuleCalls, function: Definition, part: ast.Assign | ast.NamedExpr | ast.Call) -> Iterator[str]:
    """The names whose values a statement or call keeps as they are."""
    if not isinstance(part, ast.Call):
        yield from _names(part.value)
        return
    called = last_name(part.func)
    if called in _PUT_INTO or called == "setattr":
        yield from (name for each in operands(part) for name in _names(each))
        return
    callee = calls.callee(function, part)
    for parameter, given in callee.arguments(part).pairs() if callee is not None else ():
        if isinstance(given, ast.Name) and callee is not None and _keeps(calls, callee, parameter):
            yield given.id


def _names(value: ast.expr) -> Iterator[str]:
    """`a` and `b` of `(a, [b])`: what a display holds, not what is computed with."""
    todo: list[ast.AST] = [value]
    for each in todo:
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, _DISPLAYS):
            todo += [part for part in ast.iter_child_nodes(each) if not isinstance(part, ast.expr_context)]


def _keeps(calls: ModuleCalls, callee: Definition, parameter: str) -> bool:
    """True for a function that assigns a parameter to an attribute or an element, or puts it into a container.

    Also for one that gives it to such a function.
    """

    def look() -> bool:
        for part in walk_scope(callee.node):
            named = isinstance(part, ast.Assign) and all(isinstance(each, ast.Name) for each in part.targets)
            if isinstance(part, (ast.Assign, ast.Call)) and not named and parameter in _kept(calls, callee, part):
                return True
        return False

    return calls.remembered("keeps", (callee.key, parameter), look, False)
