"""Speculation: may an expression run where eager mode skips it (side effects, exceptions, cost, derivatives)?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import rearrangements, shape_needs, speculated_calls, torch_api
from graphmend_codemod.analysis.argument_limits import (
    FOR_ANY_DTYPE,
    finite_operator,
    is_no_bool,
)
from graphmend_codemod.analysis.hazards import FREE, Hazards, short
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.operands import elementwise
from graphmend_codemod.analysis.patterns import all_given, is_name
from graphmend_codemod.analysis.scope import FunctionNode, walk_scope
from graphmend_codemod.analysis.values import Value, ValueKind, is_floating_dtype

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

__all__ = ["is_bound_above", "is_loud_property", "judge", "short"]

_PURE_BUILTINS = frozenset(
    "builtins." + name for name in "len min max abs isinstance hasattr tuple float int bool".split()
)


def judge(evaluator: Evaluator, node: ast.expr, env: Env) -> Hazards:
    """Judge `node` where names hold what `env` says; `needs_shapes` have to be asked for, or count as `raises`."""
    if isinstance(node, ast.Constant):
        return FREE
    if isinstance(node, ast.Name):
        return _name(evaluator, node, env)
    if isinstance(node, ast.Attribute):
        return _attribute(evaluator, node, env)
    if isinstance(node, ast.BinOp):
        return judge(evaluator, node.left, env) & judge(evaluator, node.right, env) & _operator(evaluator, node, env)
    if isinstance(node, ast.UnaryOp):
        return judge(evaluator, node.operand, env) & _unary(evaluator, node, env)
    if isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
        hazards = FREE
        for part in parts:
            hazards = hazards & judge(evaluator, part, env)
        if {type(each) for each in node.ops} <= {ast.Is, ast.IsNot}:
            return hazards
        if evaluator.value(node, env).is_python and {type(each) for each in node.ops} <= {ast.Eq, ast.NotEq}:
            return hazards
        return hazards & elementwise(evaluator, parts, env, ast.unparse(node))
    if isinstance(node, (ast.Tuple, ast.List)):
        hazards = FREE
        for element in node.elts:
            hazards = hazards & judge(evaluator, element, env)
        return hazards
    if isinstance(node, ast.Call):
        return _call(evaluator, node, env)
    if isinstance(node, ast.Subscript):
        inner = judge(evaluator, node.value, env) & _slice(evaluator, node.slice, env)
        if isinstance(node.slice, ast.Slice) and node.slice.step is None and _is_shape(node.value):
            return inner  # `x.shape[2:]` is empty where there is no more
        if isinstance(node.value, ast.Attribute) and _is_shape(node.value):
            needs = shape_needs.of_size(node.slice, evaluator.value(node.value.value, env))
        else:
            needs = shape_needs.of_index(node.slice, evaluator.value(node.value, env))
        if needs is None:
            return inner & Hazards(raises=f"`{ast.unparse(node)}` may be out of range")
        return inner & Hazards(needs_shapes=needs)
    if isinstance(node, ast.IfExp):
        return _if_exp(evaluator, node, env)
    return Hazards(impure=f"`{short(node)}` is not analysed")


def _if_exp(evaluator: Evaluator, node: ast.IfExp, env: Env) -> Hazards:
    """A choice by Python: the arm that is not taken does not run, but both are judged."""
    if not evaluator.value(node.test, env).is_python or not _is_cheap(node.test):
        return Hazards(impure=f"`{short(node)}` is not analysed")
    text = ast.unparse(node.test)
    body, orelse = judge(evaluator, node.body, env), judge(evaluator, node.orelse, env)
    body = body._replace(needs_shapes=frozenset(shape_needs.either(f"not ({text})", body.needs_shapes)))
    orelse = orelse._replace(needs_shapes=frozenset(shape_needs.either(text, orelse.needs_shapes)))
    return judge(evaluator, node.test, env) & body & orelse


def _is_cheap(node: ast.expr) -> bool:
    """A flag, or a comparison of names and attributes with constants, which may be asked for in a header."""
    if isinstance(node, ast.UnaryOp):
        return _is_cheap(node.operand)
    if isinstance(node, ast.Compare):
        return all(map(_is_cheap, (node.left, *node.comparators)))
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, (ast.Name, ast.Constant))


def _name(evaluator: Evaluator, node: ast.Name, env: Env) -> Hazards:
    if not evaluator.scope.is_local(node.id):
        known = evaluator.scope.resolve_global(node.id) is not None
        return FREE if known else Hazards(raises=f"`{node.id}` may not be defined")
    value = env.get(node.id)
    if value is None or value.kind is ValueKind.UNKNOWN:
        arguments = evaluator.scope.node.args
        if any(node.id == arg.arg for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]):
            return FREE
        above = is_bound_above(evaluator.scope.node, node.id, getattr(node, "lineno", 0))
        return FREE if above else Hazards(raises=f"`{node.id}` may not be bound")
    return FREE


def is_bound_above(function: FunctionNode, name: str, line: int) -> bool:
    """True where a statement of the function that runs before a line whatever happens assigns the name."""
    above = (each for each in function.body if (each.end_lineno or 0) < line)
    bound = any(is_name(target, name) for each in above if isinstance(each, ast.Assign) for target in each.targets)
    return bound and not any(isinstance(part, (ast.Delete, ast.ExceptHandler)) for part in walk_scope(function))


def _attribute(evaluator: Evaluator, node: ast.Attribute, env: Env) -> Hazards:
    if evaluator.resolve(node, env) is not None:
        return FREE
    if is_name(node.value, evaluator.scope.self_name):
        if is_loud_property(evaluator, node.attr):
            return Hazards(impure=f"the property `{short(node)}` may do more than read")
        known = (
            node.attr == "training" or f"self.{node.attr}" in env or evaluator.scope.attribute(node.attr) is not None
        )
        return FREE if known else Hazards(raises=f"`{short(node)}` may not exist")
    base = evaluator.value(node.value, env)
    inner = judge(evaluator, node.value, env)
    if base.is_tensor and (node.attr in torch_api.PYTHON_ATTRIBUTES or node.attr in torch_api.TENSOR_ATTRIBUTES):
        return inner
    resolved = evaluator.resolve(node.value.func, env) if isinstance(node.value, ast.Call) else None
    if resolved in {"torch.finfo", "torch.iinfo"}:
        return inner
    return inner & Hazards(raises=f"`{short(node)}` may not exist")


def is_loud_property(evaluator: Evaluator, name: str) -> bool:
    """True for a property of the instance's class that may do more than read."""
    facts = evaluator.scope.class_facts
    if facts is None or name not in facts.properties:
        return False
    made = evaluator.scope.index.function(facts.methods[name]) if name in facts.methods else None
    return made is None or made.loud


def reads_loudly(evaluator: Evaluator, spelled: str) -> bool:
    """True where reading `self.a.b` may do more than read: one of the attributes may be a loud property."""
    return any(is_loud_property(evaluator, name) for name in spelled.split(".")[1:])


def _slice(evaluator: Evaluator, node: ast.expr, env: Env) -> Hazards:
    if isinstance(node, ast.Slice):
        hazards = FREE
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                hazards = hazards & judge(evaluator, part, env)
        return hazards
    if isinstance(node, ast.Tuple):
        hazards = FREE
        for element in node.elts:
            hazards = hazards & _slice(evaluator, element, env)
        return hazards
    index = evaluator.value(node, env)
    if index.kind is ValueKind.TENSOR:
        return Hazards(impure=f"`{short(node)}` indexes with a tensor")
    return judge(evaluator, node, env)


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _operator(evaluator: Evaluator, node: ast.BinOp, env: Env) -> Hazards:
    left, right = evaluator.value(node.left, env), evaluator.value(node.right, env)
    hazards = elementwise(evaluator, [node.left, node.right], env, ast.unparse(node))
    if not (left.kind is ValueKind.TENSOR or right.kind is ValueKind.TENSOR):
        risky = isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift))
        return hazards & (Hazards(raises=f"`{short(node)}` may divide by zero") if risky else FREE)
    if isinstance(node.op, ast.MatMult):
        return Hazards(impure=f"`{short(node)}` is work that eager mode skips")
    if isinstance(node.op, ast.FloorDiv) and not all(_is_whole(each) for each in (left, right)):
        return Hazards(raises=f"`{short(node)}` has no derivative")
    needs = frozenset(
        short(operand)
        for operand, value in ((node.left, left), (node.right, right))
        if value.kind is ValueKind.TENSOR
        and not is_floating_dtype(value.dtype)
        # What a name holds is asked, for the dtype of the result follows from it; what is computed takes part as it is.
        and not (isinstance(node.op, FOR_ANY_DTYPE) and not isinstance(operand, (ast.Name, ast.Attribute)))
    )
    tensors = [each for each, value in ((node.left, left), (node.right, right)) if value.kind is ValueKind.TENSOR]
    plain = isinstance(node.op, FOR_ANY_DTYPE) or (isinstance(node.op, ast.Sub) and all(map(is_no_bool, tensors)))
    exponent = number_of(evaluator, node.right) if isinstance(node.op, ast.Pow) else None
    strict = frozenset() if plain or (exponent is not None and exponent >= 0 and is_no_bool(node.left)) else needs
    return hazards & Hazards(needs_floating=needs, finite=finite_operator(evaluator, node, left), strict=strict)


def _is_whole(value: Value) -> bool:
    """True for a Python value, and for a tensor of integers: no gradient flows through these."""
    return value.is_python or (value.dtype or "").startswith(("torch.int", "torch.uint"))


def _unary(evaluator: Evaluator, node: ast.UnaryOp, env: Env) -> Hazards:
    value = evaluator.value(node.operand, env)
    if isinstance(node.op, ast.Not):
        return Hazards(impure=f"`{short(node)}` reads a tensor's value") if value.kind is not ValueKind.PYTHON else FREE
    if value.kind is ValueKind.UNKNOWN:
        return Hazards(raises=f"cannot infer the type of `{short(node.operand)}`")
    if value.kind is ValueKind.TENSOR and isinstance(node.op, ast.USub) and not is_floating_dtype(value.dtype):
        needs = frozenset({short(node.operand)})
        return Hazards(needs_floating=needs, strict=needs)
    return FREE


def _call(evaluator: Evaluator, node: ast.Call, env: Env) -> Hazards:
    if any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        word.arg is None for word in node.keywords
    ):
        return Hazards(impure=f"`{short(node)}` passes arguments of unknown type")
    qualified = evaluator.resolve(node.func, env)
    arguments = all_given(node)
    hazards = FREE
    for argument in arguments:
        hazards = hazards & judge(evaluator, argument, env)
    if qualified in _PURE_BUILTINS or qualified in {"torch.finfo", "torch.iinfo", "torch.is_tensor"}:
        return hazards & _builtin(evaluator, node, env, qualified)
    name = torch_api.torch_function(qualified)
    if name is None and isinstance(node.func, ast.Attribute):
        base = evaluator.value(node.func.value, env)
        if base.kind is ValueKind.TENSOR:
            hazards = hazards & judge(evaluator, node.func.value, env)
            return hazards & speculated_calls.tensor_call(evaluator, node, env, node.func.attr, node.func.value)
    if name is None and qualified in rearrangements.FUNCTIONS:
        return hazards & rearrangements.hazards_of(evaluator, qualified, node, env)
    if name is None:
        return Hazards(impure=f"`{short(node)}` may have side effects or be expensive")
    return hazards & speculated_calls.tensor_call(evaluator, node, env, name, node.args[0] if node.args else None)


def _builtin(evaluator: Evaluator, node: ast.Call, env: Env, qualified: str | None) -> Hazards:
    values = [evaluator.value(argument, env) for argument in node.args]
    if any(value.kind is ValueKind.TENSOR for value in values) and qualified in {
        "builtins.float",
        "builtins.int",
        "builtins.bool",
        "builtins.min",
        "builtins.max",
        "builtins.tuple",
    }:
        return Hazards(impure=f"`{short(node)}` reads a tensor's value")
    if qualified in {"torch.finfo", "torch.iinfo"}:
        argument = node.args[0] if node.args else None
        tensor = evaluator.value(argument.value, env) if isinstance(argument, ast.Attribute) else None
        if tensor is not None and tensor.kind is ValueKind.TENSOR and not is_floating_dtype(tensor.dtype):
            needs = frozenset({short(argument.value)})  # type: ignore[union-attr]
            return Hazards(needs_floating=needs, strict=needs)
    return FREE
