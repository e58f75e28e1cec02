"""Operands for which torch neither raises nor makes a zero gradient nan: their dtypes, sizes and numbers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend_codemod.analysis.hazards import short
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.values import Origin, Value, ValueKind, is_floating_dtype

if TYPE_CHECKING:
    from graphmend_codemod.analysis.interpreter import Env, Evaluator

FOR_ANY_DTYPE = (ast.Add, ast.Mult, ast.Div)
"""These raise for no dtype but 8-bit floats."""
OF_ANY_DTYPE = frozenset(
    """sum exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan tanh sigmoid atan sinh cosh erf reciprocal
    clone detach""".split()
)
"""So do these, of which integers become floats."""
_WIDE = frozenset({"torch.bfloat16", "torch.float32", "torch.float64"})
_LARGEST_HALF = 65504.0
LARGEST_FLOAT = 3.4e38
_SMALLEST_FLOAT = 1.2e-38


def has_builtins(evaluator: Evaluator) -> bool:
    """True where `all` and `zip`, which a condition on two shapes needs, are what they seem to be."""
    scope = evaluator.scope
    return all(
        not scope.is_local(each) and scope.resolve_global(each) in (None, f"builtins.{each}") for each in ("all", "zip")
    )


def is_no_bool(node: ast.expr) -> bool:
    """True for a number, and for what is no bool whatever it is computed of."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) or is_no_bool(node.left) or is_no_bool(node.right)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in OF_ANY_DTYPE - {"clone", "detach"}


def is_size(evaluator: Evaluator, node: ast.expr, env: Env) -> bool:
    """A size that exists: of a tensor, or written out; or several of them."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(is_size(evaluator, each, env) for each in node.elts)
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value >= 0
    value = evaluator.value(node, env)
    return (
        value.is_python and value.origin is Origin.SHAPE and isinstance(node, (ast.Attribute, ast.Subscript, ast.Call))
    )


def is_own(evaluator: Evaluator, node: ast.expr, env: Env) -> bool:
    """The dtype or device of a tensor, or a dtype of torch."""
    value = evaluator.value(node, env)
    if value.callee is not None and value.callee.startswith("torch."):
        return True
    own = isinstance(node, ast.Attribute) and node.attr in {"dtype", "device"}
    return own and evaluator.value(node.value, env).kind is ValueKind.TENSOR  # type: ignore[attr-defined]


def why_it_may_not_fit(
    evaluator: Evaluator, numbers: list[ast.expr], env: Env, tensor: Value, node: ast.Call
) -> str | None:
    """Numbers that a narrow dtype cannot hold make clamp and fill raise (not arithmetic, which overflows to inf)."""
    for number in numbers:
        if not fits(evaluator, number, env, tensor):
            return f"`{short(number)}` in `{short(node)}` may not fit into the tensor's dtype"
    return None


def fits(evaluator: Evaluator, number: ast.expr, env: Env, tensor: Value) -> bool:
    """True when every dtype that `tensor` may have holds `number`: a small literal, inf, or a limit of the dtype."""
    if isinstance(number, ast.UnaryOp) and isinstance(number.op, (ast.USub, ast.UAdd)):
        return fits(evaluator, number.operand, env, tensor)
    if isinstance(number, ast.Constant) and isinstance(number.value, (int, float)):
        largest = 3.3e38 if tensor.dtype in _WIDE else _LARGEST_HALF
        return is_floating_dtype(tensor.dtype) and abs(number.value) <= largest
    if isinstance(number, ast.Constant):
        return number.value is None
    if isinstance(number, ast.Call) and evaluator.resolve(number.func, env) == "builtins.float":
        return is_floating_dtype(tensor.dtype) and len(number.args) == 1 and isinstance(number.args[0], ast.Constant)
    value = evaluator.value(number, env)
    return value.is_python and value.origin is Origin.META


def finite_operator(evaluator: Evaluator, node: ast.BinOp, left: Value) -> bool:
    """True where a zero gradient stays zero: the operator multiplies it only with finite numbers."""
    if isinstance(node.op, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor)):
        return True
    factor = number_of(evaluator, node.right if left.kind is ValueKind.TENSOR else node.left)
    if factor is None:
        return False
    if isinstance(node.op, ast.Mult):
        return abs(factor) <= LARGEST_FLOAT
    # A divisor that rounds to zero in float32 makes an infinite factor, as does a number that is divided.
    return (
        isinstance(node.op, ast.Div)
        and left.kind is ValueKind.TENSOR
        and _SMALLEST_FLOAT <= abs(factor) <= LARGEST_FLOAT
    )
