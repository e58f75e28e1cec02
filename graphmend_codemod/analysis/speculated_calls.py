"""Speculation about calls of torch: whether they may run where eager mode skips them, and what to ask for that."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from graphmend_codemod.analysis import rearrangements, shape_needs, torch_api
from graphmend_codemod.analysis.argument_limits import (
    LARGEST_FLOAT,
    OF_ANY_DTYPE,
    has_builtins,
    is_own,
    is_size,
    why_it_may_not_fit,
)
from graphmend_codemod.analysis.effects import effect_of
from graphmend_codemod.analysis.hazards import FREE, Hazards, short
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.operands import elementwise
from graphmend_codemod.analysis.patterns import all_given, expanded_like, same, written_integer
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.shape_needs import ShapeNeed
from graphmend_codemod.analysis.torch_api import NOT_FOR_EMPTY
from graphmend_codemod.analysis.values import BOOL, is_bool_or_byte, is_floating_dtype

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

_COSTLY = frozenset(
    """matmul mm bmm mv addmm baddbmm einsum tensordot linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d scaled_dot_product_attention cdist interpolate grid_sample fft layer_norm group_norm batch_norm
    sort topk argsort unique""".split()
)
# `positive` takes no bool, and `nan_to_num` of complex numbers has no derivative.
_ANY_DTYPE = (torch_api.SAME_ANY_DTYPE - {"positive", "nan_to_num"}) | frozenset(
    {"eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "any", "all"}
    | {"transpose", "swapaxes", "swapdims", "unsqueeze", "squeeze", "flatten", "expand", "expand_as"}
    | {"permute", "movedim", "moveaxis", "view", "view_as", "reshape", "reshape_as", "repeat", "tile", "unflatten"}
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


def tensor_call(evaluator: Evaluator, node: ast.Call, env: Env, name: str, first: ast.expr | None) -> Hazards:
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
        found = elementwise(evaluator, operands, env, ast.unparse(node))
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
    """The arguments that a torch call broadcasts; empty if something other than their shapes can make it raise."""
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
        unbroadcast = elementwise(evaluator, operands, env, ast.unparse(node)).raises
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
