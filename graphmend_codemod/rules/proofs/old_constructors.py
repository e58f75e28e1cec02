"""Constructors of before torch 0.4, which Dynamo traces as something else than eager mode runs.

Of `torch.FloatTensor(x.size())` it makes a tensor of two numbers, the sizes, without a word; of
`torch.FloatTensor(np.ones(3))` one of the array's own dtype, or none at all. `torch.FloatTensor().new_empty(x.size())`,
and `torch.tensor` with a dtype, are what it gets right.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import elements_of
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.analysis.speculation import is_loud_property, reads_loudly
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.twin import Twin

_DTYPES = {
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.HalfTensor": "float16",
    "torch.LongTensor": "int64",
    "torch.IntTensor": "int32",
    "torch.ShortTensor": "int16",
    "torch.CharTensor": "int8",
    "torch.ByteTensor": "uint8",
    "torch.BoolTensor": "bool",
    "torch.Tensor": None,
}
"""The constructors, with the dtype that they make; None for the default one."""
NAMES = frozenset(name.rpartition(".")[2] for name in _DTYPES)
_ARRAYS = frozenset(
    f"numpy.{name}"
    for name in "arange array asarray concatenate eye full hstack linspace ones stack tile vstack zeros".split()
)
"""Functions of NumPy that return an array, never a number of its own types."""

_INDEX = (ast.Constant, ast.Name, ast.Slice, ast.UnaryOp, ast.BinOp)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)


def new_form(site: Site, call: ast.Call) -> Twin | None:
    """`torch.FloatTensor().new_empty(x.size())` for `torch.FloatTensor(x.size())`; None where Dynamo is right."""
    if len(call.args) != 1 or call.keywords or site.torch is None:
        return None
    made = site.resolve(call.func)
    given = call.args[0]
    if isinstance(given, ast.Call) and made in _DTYPES and _is_new_array(site, given):
        dtype = _DTYPES[made]
        kind = f"{site.torch}.{dtype}" if dtype is not None else f"{site.torch}.get_default_dtype()"
        # Whatever the default device is, these make tensors where they always did.
        device = '"cpu"' if dtype is not None else f"{site.text(call.func)}().device"
        text = f"{site.torch}.tensor({site.text(given)}, dtype={kind}, device={device})"
        return Twin(call, call, text, (site.compiling,))
    sized = _sized(site, given)
    if sized is None or not (made in _DTYPES or _may_be_kept(site, call.func, made)):
        return None
    conditions = [site.compiling]
    if made is None:
        conditions.append(f"type({site.text(call.func)}) is type({site.torch}.FloatTensor)")
    known = site.value(sized)
    if not known.is_tensor or known.hint:
        conditions.append(f"isinstance({site.text(sized)}, {site.torch}.Tensor)")
    return Twin(call, call, f"{site.text(call.func)}().new_empty({site.text(given)})", tuple(conditions))


def _is_new_array(site: Site, call: ast.Call) -> bool:
    """True for `np.ones(3)`; False for an array that somebody else may have, whose memory the old tensor shares."""
    words = {word.arg for word in call.keywords}
    kept = site.resolve(call.func) == "numpy.asarray" and not isinstance(next(iter(call.args), None), _LISTS)
    return site.resolve(call.func) in _ARRAYS and not kept and words.isdisjoint({"copy", "out", None})


def _sized(site: Site, given: ast.expr) -> ast.expr | None:
    """`x` of `x.size()`, `x.shape`, `x[..., :4].shape` and `x.shape[1:]`, where asking twice makes no difference."""
    if isinstance(given, ast.Subscript) and isinstance(given.slice, ast.Slice):
        given = given.value  # a part of a size is one, too
    if isinstance(given, ast.Call) and not given.args and not given.keywords:
        asked, word = given.func, "size"
    else:
        asked, word = given, "shape"
    if not isinstance(asked, ast.Attribute) or asked.attr != word:
        return None
    owner = asked.value
    while isinstance(owner, ast.Subscript) and all(map(_is_plain_index, elements_of(owner.slice))):
        owner = owner.value
    name = dotted(owner)
    if name is None or reads_loudly(site.evaluator, name):
        return None
    return asked.value


def _is_plain_index(node: ast.expr) -> bool:
    """True for an index that gives the same when it is written twice."""
    return all(isinstance(each, (*_INDEX, ast.expr_context, ast.unaryop, ast.operator)) for each in ast.walk(node))


def _may_be_kept(site: Site, function: ast.expr, resolved: str | None) -> bool:
    """True for `self.Tensor`, an attribute that may hold one of the constructors, and for a local name of one."""
    if isinstance(function, ast.Name):
        return function.id in NAMES and resolved is None and site.evaluator.scope.is_local(function.id)
    if resolved is not None or not isinstance(function, ast.Attribute) or function.attr not in NAMES:
        return False
    return dotted(function) is not None and not is_loud_property(site.evaluator, function.attr)
