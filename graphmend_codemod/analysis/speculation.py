"""Speculation: may an expression run where eager mode skips it (side effects, exceptions, cost, derivatives)?"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import rearrangements, shape_needs, torch_api
from graphmend_codemod.analysis.argument_limits import (
    FOR_ANY_DTYPE,
    LARGEST_FLOAT,
    OF_ANY_DTYPE,
    finite_operator,
    has_builtins,
    is_no_bool,
    is_own,
    is_size,
    why_it_may_not_fit,
)
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.hazards import FREE, Hazards
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.patterns import all_given, expanded_like, is_name, same, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.shape_needs import ShapeNeed
from graphmend_codemod.analysis.torch_api import NOT_FOR_EMPTY
from graphmend_codemod.analysis.values import BOOL, Value, ValueKind, is_bool_or_byte, is_floating_dtype

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

_PURE_BUILTINS = frozenset(
    "builtins." + name for name in "len min max abs isinstance hasattr tuple float int bool".split()
)
_COSTLY = frozenset(
    """matmul mm bmm mv addmm baddbmm einsum tensordot linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d scaled_dot_product_attention cdist interpolate grid_sample fft layer_norm group_norm batch_norm
    sort topk argsort unique""".split()
)
# `positive` takes no bool, and `nan_to_num` of complex numbers has no derivative.
_ANY_DTYPE = (torch_api.SAME_ANY_DTYPE - {"positive", "nan_to_num"}) | frozenset(
    {"eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "any", "all"}
    | {"transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze", "flatten", "expand", "expand_as"}
)


_MAKES_SIZES = frozenset({"zeros", "ones", "empty"})
_NOT_FOR_EVERY_SHAPE = frozenset("tril triu flip normalize cumsum cumprod softmax log_softmax".split())
_CLAMPS = frozenset("clamp clip clamp_min clamp_max hardtanh full_like".split())
_TAKES_SLOPE = frozenset({"leaky_relu"})
_BROADCAST = (torch_api.BINARY | torch_api.TO_BOOL) - {"isin"}
_TENSORS_ALONE = frozenset(
    """maximum minimum fmax fmin atan2 arctan2 logaddexp logaddexp2 hypot heaviside nextafter isclose
    logical_and logical_or logical_xor""".split()
)

_LAST = ast.UnaryOp(ast.USub(), ast.Constant(1))


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
        return hazards & _elementwise(evaluator, parts, env, ast.unparse(node))
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


def short(node: ast.AST, limit: int = 60) -> str:
    """Source text of a node for a message, on one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _name(evaluator: Evaluator, node: ast.Name, env: Env) -> Hazards:
    if not evaluator.scope.is_local(node.id):
        known = evaluator.scope.resolve_global(node.id) is not None
        return FREE if known else Hazards(raises=f"`{node.id}` may not be defined")
    value = env.get(node.id)
    if value is None or value.kind is ValueKind.UNKNOWN:
        arguments = evaluator.scope.node.args
        if any(node.id == arg.arg for arg in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]):
            return FREE
        return Hazards(raises=f"`{node.id}` may not be bound")
    return FREE


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


def _elementwise(evaluator: Evaluator, operands: list[ast.expr], env: Env, text: str) -> Hazards:
    """Operands of one elementwise operation: cannot fail when all are one tensor's shape, 0-dim, or numbers."""
    values = [evaluator.value(operand, env) for operand in operands]
    tensors = [value for value in values if value.kind is ValueKind.TENSOR]
    if any(value.kind is ValueKind.UNKNOWN for value in values):
        return Hazards(raises=f"cannot infer the types of all operands of `{_clip(text)}`")
    if any(value.optional for value in tensors):
        return Hazards(raises=f"an operand of `{_clip(text)}` may be None")
    shapes = {value.shape for value in tensors}
    if len(shapes) > 1 and evaluator.broadcast(tensors) is None:
        named = [each for each, value in zip(operands, values, strict=True) if value.kind is ValueKind.TENSOR]
        needs = shape_needs.of_operands(*named) if len(named) == 2 and has_builtins(evaluator) else None
        return Hazards(needs_shapes=needs) if needs else Hazards(raises=_may_not_broadcast(text))
    return FREE


def _may_not_broadcast(text: str) -> str:
    return f"the operands of `{_clip(text)}` may not broadcast"


def _clip(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _operator(evaluator: Evaluator, node: ast.BinOp, env: Env) -> Hazards:
    left, right = evaluator.value(node.left, env), evaluator.value(node.right, env)
    hazards = _elementwise(evaluator, [node.left, node.right], env, ast.unparse(node))
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
            return hazards & _tensor_call(evaluator, node, env, node.func.attr, node.func.value)
    if name is None and qualified in rearrangements.FUNCTIONS:
        return hazards & rearrangements.hazards_of(evaluator, qualified, node, env)
    if name is None:
        return Hazards(impure=f"`{short(node)}` may have side effects or be expensive")
    return hazards & _tensor_call(evaluator, node, env, name, node.args[0] if node.args else None)


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


def _tensor_call(evaluator: Evaluator, node: ast.Call, env: Env, name: str, first: ast.expr | None) -> Hazards:
    effect = effect_of(evaluator, node, env)
    if effect.writes and effect.known:
        return Hazards(impure=f"`{short(node)}` writes in place")
    if effect.random and effect.known:
        return Hazards(impure=f"`{short(node)}` draws random numbers")
    if name in _COSTLY:
        return Hazards(impure=f"`{short(node)}` is work that eager mode skips")
    if name in torch_api.PYTHON_METHODS:
        reads = torch_api.PYTHON_METHODS[name] == "other"
        return Hazards(impure=f"`{short(node)}` reads a tensor's value") if reads else FREE
    if name not in torch_api.FUNCTIONS_RETURNING_TENSOR or name in {
        "nonzero",
        "masked_select",
        "repeat_interleave",
        "bincount",
    }:
        return Hazards(impure=f"`{short(node)}` may have side effects or be expensive")
    if name == "floor_divide":
        return Hazards(raises=f"`{short(node)}` has no derivative")
    if name in _TENSORS_ALONE and any(evaluator.value(each, env).is_python for each in node.args):
        return Hazards(impure=f"`{short(node)}` raises unless all its arguments are tensors")
    finite = name in torch_api.FINITE_DERIVATIVE and not any(word.arg == "alpha" for word in node.keywords)
    if name in _TAKES_SLOPE:
        finite = finite and all(
            abs(number_of(evaluator, each) or math.inf) <= LARGEST_FLOAT for each in node.args if each is not first
        )
        finite = finite and not any(word.arg != "inplace" for word in node.keywords)
    if first is None:
        return Hazards(finite=finite)
    if name in {"tensor", "scalar_tensor"} and number_of(evaluator, first) is not None:
        return Hazards(finite=finite)
    value = evaluator.value(first, env)
    computed = not isinstance(first, (ast.Name, ast.Attribute))
    quotient = isinstance(first, ast.BinOp) and isinstance(first.op, ast.Div)  # floating or complex, whatever it is of
    floating = is_floating_dtype(value.dtype) or name in _ANY_DTYPE or quotient
    floating = floating or (computed and name in OF_ANY_DTYPE) or name == "where"
    needs = frozenset() if floating else frozenset({short(first)})
    shapes = _shapes(evaluator, node, env, name, first)
    raises = None if shapes is not None else _why_it_may_raise(evaluator, node, env, name, first)
    if name in torch_api.CREATION:
        needs = frozenset()
    strict = frozenset() if name in OF_ANY_DTYPE else needs
    loose = name == "masked_fill" and not is_floating_dtype(value.dtype)
    if loose and _asks_for_signs(evaluator, node, first) is None:
        needs = strict = frozenset({short(first)})
    return Hazards(None, raises, needs, finite, shapes or frozenset(), strict)


def _shapes(evaluator: Evaluator, node: ast.Call, env: Env, name: str, first: ast.expr) -> frozenset[ShapeNeed] | None:
    """What a call of torch needs of shapes in order not to raise; None where nothing spells it."""
    if operands := _broadcast(evaluator, node, env, name, first):
        found = _elementwise(evaluator, operands, env, ast.unparse(node))
        asked = _asks_for_bools(evaluator, operands[1], env) if name == "masked_fill" else frozenset()
        signs = _asks_for_signs(evaluator, node, first) if name == "masked_fill" else None
        needs = found.needs_shapes | (signs or frozenset())
        return None if found.raises is not None or asked is None else needs | asked
    if name == "full_like" and len(node.args) == 2:
        return _asks_for_signs(evaluator, node, first)
    if name not in {"expand", "expand_as"}:
        return shape_needs.of_call(node, name, first, evaluator.value(first, env))
    like = expanded_like(node)
    known = like is not None and evaluator.value(like, env).is_tensor and has_builtins(evaluator)
    return shape_needs.of_expansion(node, first) if known else None


def _broadcast(evaluator: Evaluator, node: ast.Call, env: Env, name: str, first: ast.expr) -> list[ast.expr]:
    """The arguments that a call of torch broadcasts, where nothing but their shapes can make it raise."""
    rest = [argument for argument in node.args if argument is not first]
    if name in _BROADCAST:
        return [first, *rest] if rest else []
    if name == "where" and [*node.args] == [first, *rest] and len(rest) == 2 and not node.keywords:
        return [first, *rest] if is_bool_or_byte(evaluator.value(first, env).dtype) else []
    if name == "masked_fill" and len(rest) == 2:
        return [first, rest[0]] if _why_it_does_not_fill(evaluator, node, env, first) is None else []
    return []


def _asks_for_bools(evaluator: Evaluator, mask: ast.expr, env: Env) -> frozenset[ShapeNeed] | None:
    """What has to be asked for a mask to hold bools; None where it cannot be."""
    if evaluator.value(mask, env).dtype == BOOL:
        return frozenset()
    while not isinstance(mask, (ast.Name, ast.Attribute)):
        moved = isinstance(mask, ast.Call) and evaluator.resolve(mask.func, env) in rearrangements.FUNCTIONS
        inner = mask.args[0] if moved and mask.args else getattr(mask, "value", None)  # type: ignore[attr-defined]
        if not (moved or isinstance(mask, ast.Subscript)) or inner is None:
            return None
        mask = inner
    text = dotted(mask)
    asked = f"{text}.dtype == torch.bool"
    return frozenset({ShapeNeed(shape_needs.NAMED, asked)}) if text and _is_torch_named(evaluator) else None


def _why_it_does_not_fill(evaluator: Evaluator, node: ast.Call, env: Env, first: ast.expr) -> str | None:
    """Why a floating tensor may not hold what `masked_fill` puts into it."""
    value = evaluator.value(first, env)
    floating = value if is_floating_dtype(value.dtype) else value._replace(dtype="float:asked")
    return why_it_may_not_fit(evaluator, all_given(node)[-1:], env, floating, node)


def _asks_for_signs(evaluator: Evaluator, node: ast.Call, first: ast.expr) -> frozenset[ShapeNeed] | None:
    """What has to be asked for every dtype of `first` to hold the small integer that the call puts in; None if none."""
    filled = node.args[-1] if node.args and not node.keywords else None
    number = written_integer(filled) if filled is not None else None
    if number is None and isinstance(filled, ast.Constant) and filled.value in {0.0, 1.0}:
        number = 0
    if number is None or not -128 <= number <= 127 or filled is first:
        return None
    text = dotted(first)
    if number >= 0:
        return frozenset()
    asked = f"{text}.dtype != torch.uint8"
    return frozenset({ShapeNeed(shape_needs.NAMED, asked)}) if text and _is_torch_named(evaluator) else None


def _is_torch_named(evaluator: Evaluator) -> bool:
    return not evaluator.scope.is_local("torch") and evaluator.scope.resolve_global("torch") == "torch"


def _why_it_may_raise(evaluator: Evaluator, node: ast.Call, env: Env, name: str, first: ast.expr) -> str | None:
    rest = [argument for argument in node.args if argument is not first]
    numbers = [*rest, *(word.value for word in node.keywords if word.arg not in {"dim", "dtype", "device"})]
    dimension = next((word.value for word in node.keywords if word.arg == "dim"), None)
    unclear = f"`{short(node)}` may raise for some arguments"
    if operands := _broadcast(evaluator, node, env, name, first):
        unbroadcast = _elementwise(evaluator, operands, env, ast.unparse(node)).raises
        return unbroadcast or f"cannot infer that `{short(operands[1])}` is a mask of bools"
    if name in torch_api.REDUCTIONS:
        return unclear if numbers or dimension is not None or name in NOT_FOR_EMPTY else None
    if name == "masked_fill" and len(rest) == 2:
        return _why_it_does_not_fill(evaluator, node, env, first)
    if name in _CLAMPS:
        return why_it_may_not_fit(evaluator, numbers, env, evaluator.value(first, env), node)
    if name in {"zeros_like", "ones_like", "gelu", "round", "nan_to_num"} | torch_api.CASTS.keys():
        return None
    if name in _MAKES_SIZES and node.args and all(is_size(evaluator, each, env) for each in node.args):
        words = {word.arg: word.value for word in node.keywords}
        if set(words) <= {"dtype", "device"} and all(is_own(evaluator, each, env) for each in words.values()):
            return None
    if name == "to" and len(rest) == 1 and not node.keywords and is_own(evaluator, rest[0], env):
        return None
    known = name in torch_api.SAME_ANY_DTYPE | torch_api.SAME_IF_FLOATING | torch_api.TO_BOOL
    harmless = not rest and (dimension is None or same(dimension, _LAST))
    return None if known and harmless and name not in _NOT_FOR_EVERY_SHAPE else unclear
