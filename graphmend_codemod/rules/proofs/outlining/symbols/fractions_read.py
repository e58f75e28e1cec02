"""Whether a tensor whose number is read holds whole numbers: code may count by their symbols alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.calls import keyword
from graphmend_codemod.analysis.patterns import is_attribute, is_literal
from graphmend_codemod.analysis.scope import parameter_names, walk
from graphmend_codemod.analysis.values import BOOL, Value, ValueKind, canonical_dtype, is_floating_dtype
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import assigned

_KEEPING = (
    torch_api.SAME_ANY_DTYPE
    | (torch_api.LAYOUT - {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
    | torch_api.name_set(
        """abs absolute neg negative relu ceil floor round trunc sign square clamp clip clamp_min clamp_max cumsum
        cumprod sum prod max min amax amin median cpu cuda to"""
    )
)
"""They give whole numbers for whole numbers, and floats for floats."""

_FLOATING = torch_api.name_set(
    """mean nanmean std var norm logsumexp sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh
    asin acos atan erf erfc sigmoid logit softmax log_softmax logsigmoid softplus reciprocal true_divide rand randn
    rand_like randn_like normal float half double bfloat16 cross_entropy mse_loss l1_loss kl_div linspace logspace"""
)
"""They give floats whatever they are given, or raise, if no argument says otherwise."""

_WITH_INDICES = frozenset({"max", "min", "median", "sort", "topk", "mode", "kthvalue", "cummax", "cummin"})
_DEPTH = 8
"""So many assignments are followed: enough for any function that somebody reads."""


def has_fraction(site: Site, node: ast.expr) -> bool:
    """True where the source shows that the numbers of a tensor are floats or bools, as far as anybody can read there.

    A name holds what the last assignment above gave it.
    """
    dtype = site.value(node).dtype or ""
    return dtype == BOOL or dtype.startswith("bool:") or _is_float(site, node, site.place.statement.lineno, _DEPTH)


def whole_at_trace(site: Site, node: ast.expr) -> list[str]:
    """Conditions under which the tensor does not hold floats; none where the source tells it or nothing can be asked.

    They ask for the dtype of the name that the tensor is computed from in ways that keep the dtype.
    """
    plain = True
    while not (isinstance(node, ast.Name) or _is_own(node, site)):
        operands = [each for each in _operands(site, node) if not isinstance(each, ast.Constant)]
        if len(operands) != 1:
            return []
        plain = plain and not isinstance(node, ast.Subscript)
        node = operands[0]
    value = site.value(node)
    if (value.dtype or "").startswith("torch.") or value.kind is ValueKind.PYTHON or not _is_read(site, node):
        return []
    text = site.text(node)
    if value.kind is ValueKind.TENSOR and not value.hint and not value.optional:
        return [f"not {text}.is_floating_point()"]
    if value.kind is not ValueKind.TENSOR and not plain:
        # It may be a list of tensors.
        return [f"not (isinstance({text}, {site.torch}.Tensor) and {text}.is_floating_point())"]
    return [f"isinstance({text}, {site.torch}.Tensor)", f"not {text}.is_floating_point()"]


def _is_own(node: ast.expr, site: Site) -> TypeGuard[ast.Attribute]:
    """True for an attribute of the instance."""
    return is_attribute(node, site.evaluator.scope.self_name)


def _is_read(site: Site, node: ast.Name | ast.Attribute) -> bool:
    """True for a parameter, and for a name of the function or an attribute that the statement reads in any case."""
    statement = site.place.statement
    if isinstance(node, ast.Name) and node.id in parameter_names(site.evaluator.scope.node):
        return True
    parts = [part for part in walk(statement) if isinstance(part, (ast.IfExp, ast.BoolOp, ast.comprehension))]
    return not parts and (isinstance(node, ast.Attribute) or site.evaluator.scope.is_local(node.id))


def _is_float(site: Site, node: ast.expr, line: int, depth: int) -> bool:
    if not depth:
        return False
    if line == site.place.statement.lineno and _known(site.value(node)) is not None:
        return _known(site.value(node)) is True
    if isinstance(node, ast.Name):
        above = [each for each in assigned(site, node.id) if each.lineno < line]
        return bool(above) and _is_float(site, above[-1], above[-1].lineno, depth - 1)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if _is_own(node, site):
        return site.evaluator.holds_parameter(node.attr)  # it takes a gradient, as a rule
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return True
    if isinstance(node, ast.Call):
        told = _told(site, node)
        if told is not None:
            return told
    return any(_is_float(site, each, line, depth) for each in _operands(site, node))


def _known(value: Value) -> bool | None:
    """What the dataflow knows: True for floats, False for whole numbers."""
    if not value.is_tensor or value.dtype is None:
        return None
    return True if is_floating_dtype(value.dtype) else False if value.dtype.startswith("torch.") else None


def _told(site: Site, node: ast.Call) -> bool | None:
    """Whether the name of a function, or a dtype that is given to it, says that it makes floats; None for neither."""
    name = site.operation(node)[0]
    given = keyword(node, "dtype")
    for each in [given] if given is not None else node.args if name in {"to", "type"} else []:
        dtype = site.resolve(each) or ""
        if dtype == "builtins.float" or is_floating_dtype(canonical_dtype(dtype)):
            return True
        if each is given or canonical_dtype(dtype).startswith(("torch.int", "torch.uint", "torch.bool")):
            return False
    if name in _FLOATING:
        return True
    if name in {"div", "divide"}:
        return keyword(node, "rounding_mode") is None
    return None


def _operands(site: Site, node: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression that decide whether it holds floats; nothing where that is not known."""
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Subscript):
        pair = isinstance(node.value, ast.Call) and site.operation(node.value)[0] in _WITH_INDICES
        if not pair or (is_literal(node.slice, 0)):
            yield node.value
    elif isinstance(node, ast.Attribute) and node.attr in {"values", "data", "T"}:
        yield node.value
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    elif isinstance(node, ast.Call) and site.operation(node)[0] in {*_KEEPING, "tensor", "as_tensor", "stack", "cat"}:
        if site.resolve(node.func) is None and isinstance(node.func, ast.Attribute):
            yield node.func.value
        elif node.args:
            yield node.args[0]
