"""A window that is stored in a place of a fixed size, which says how wide it is: `out[i] = x[i, :, start:stop]`.

torch reads the tensors `start` and `stop` to know what to take. Where the window is not as wide as the place, eager
mode raises, but for a window of one element, which is spread over it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import elements_of, is_constant, is_integer, root_of
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.core.settings import selects
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import (
    FixedForm,
    tensor_asked,
)
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor

_ASKS = '''\
def _is_window(x, *bounds) -> bool:
    """True for bounds of a slice of `x` that are integers, or tensors of one on its device: known while tracing."""
    tensors = [each for each in bounds if isinstance(each, {torch}.Tensor)]
    if not isinstance(x, {torch}.Tensor) or any(each.dim() > 1 or each.numel() != 1 for each in tensors):
        return False
    fine = all(each.dtype == {torch}.int64 and each.device == x.device for each in tensors)
    others = (each for each in bounds if each is not None and not isinstance(each, {torch}.Tensor))
    return fine and bool(tensors) and all(isinstance(each, int) for each in others)'''
_TAKES = '''\
def _window_for(place, x, dim, start, stop):
    """`x[..., start:stop, ...]` along `dim`, as wide as the `place` that it is stored in, or one element spread."""
    size, behind = x.size(dim), x.dim() - dim
    count = place.size(-behind) if behind <= place.dim() else 1
    ends = (0 if start is None else start, size if stop is None else stop)
    ends = [{torch}.as_tensor(each, device=x.device) for each in ends]
    start, stop = ({torch}.where(each < 0, each + size, each).clamp(0, size) for each in ends)
    width = (stop - start).clamp(min=0)
    fits = (width == count) | (width == 1)
    {torch}._assert_async(fits, "what is stored is not as wide as the place that it is stored in")
    places = start + {torch}.arange(count, device=x.device) * (width == count)
    return x.index_select(dim, places.clamp(max=size - 1))'''
_SIGNED = (ast.Add, ast.Sub)


def stored_window(site: Site, statement: ast.stmt, node: ast.Subscript) -> FixedForm | None:
    """`out[i] = _window_for(out[i], x[i, :, :], 1, start, stop)`; None where no bound of a slice seems a tensor."""
    place = _place(site, statement, node)
    if place is None or site.settings.guards != "assert":
        return None  # without the check, compiled code would store another window where eager mode raises
    parts = elements_of(node.slice)
    windows = [each for each in parts if isinstance(each, ast.Slice) and _reads_a_tensor(site, each)]
    others = [each for each in parts if each not in windows]
    if not windows or site.value(node.value).is_python or not all(_is_fixed(site, each) for each in others):
        return None
    if root_of(place) == root_of(node.value) or not site.sole_owner(root_of(place) or ""):
        shared = f"`{root_of(place)}` may share memory with `{root_of(node.value)}`, of which it stores a part"
        raise NotProven(f"{shared}; manually store it in a new tensor")
    bounds = [bound for window in windows for bound in (window.lower, window.upper) if bound is not None]
    numbers = {
        id(bound): (bound, site.text(read)) for bound in bounds if (read := number_read(site, bound, INTEGER_CAST))
    }
    if not all(_is_repeatable(each) for each in bounds if id(each) not in numbers):
        raise NotProven("its bounds would be computed twice; assign them to variables first")
    inner, kept, tensor = site.but(written=numbers), site.text(place), site.text(node.value)
    conditions = [
        f"_is_window({', '.join([tensor, *map(inner.text, bounds)])})",
        *tensor_asked(site, place.value),
        *(f"isinstance({site.text(each)}, int)" for each in _numbers(site, [*elements_of(place.slice), *others])),
    ]
    text = site.but(written={id(each): (each, ":") for each in windows}).text(node)
    for window in windows:
        dim = sum(isinstance(each, ast.Slice) for each in parts[: parts.index(window)])
        start, stop = ("None" if each is None else inner.text(each) for each in (window.lower, window.upper))
        text = f"_window_for({kept}, {text}, {dim}, {start}, {stop})"
    sources = (("_is_window", _ASKS), ("_window_for", _TAKES))
    helpers = tuple(Helper(name, each.replace("{torch}", site.torch or "torch"), shared=True) for name, each in sources)
    return FixedForm(node, text, tuple(dict.fromkeys(conditions)), helpers=helpers)


def is_mended(site: Site, statement: ast.stmt, node: ast.expr) -> bool:
    """True where GM411 writes such a window, so that nothing else has to take it in."""
    if not isinstance(node, ast.Subscript) or not selects(site.settings, "GM411", site.summary.path):
        return False
    try:
        return stored_window(site, statement, node) is not None
    except NotProven:
        return False


def _place(site: Site, statement: ast.stmt, node: ast.Subscript) -> ast.Subscript | None:
    """The element of a tensor that a statement stores the whole of `node` in, and nothing else."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Subscript) or statement.value is not node:  # type: ignore[attr-defined]
        return None
    if not isinstance(target.value, ast.Name) or dotted(node.value) is None:
        return None
    parts = elements_of(target.slice)
    return target if all(is_constant(each, ...) or _is_fixed(site, each) for each in parts) else None


def _reads_a_tensor(site: Site, node: ast.Slice) -> bool:
    bounds = [each for each in (node.lower, node.upper) if each is not None]
    reads = (seems_tensor(site, each) or number_read(site, each, INTEGER_CAST) is not None for each in bounds)
    return node.step is None and any(reads)


def _is_fixed(site: Site, part: ast.expr) -> bool:
    """True for an integer, or a slice between integers: a view whose size only Python numbers tell."""
    if isinstance(part, ast.Slice):
        return all(each is None or _is_fixed(site, each) for each in (part.lower, part.upper, part.step))
    return is_integer(part) or (isinstance(part, ast.Name) and not seems_tensor(site, part))


def _numbers(site: Site, parts: list[ast.expr]) -> Iterator[ast.expr]:
    """The names among the parts of an index, which the header asks to be integers where nothing tells that."""
    for part in parts:
        if isinstance(part, ast.Slice):
            yield from _numbers(site, [each for each in (part.lower, part.upper, part.step) if each is not None])
        elif isinstance(part, ast.Name) and not _is_number(site, part):
            yield part


def _is_number(site: Site, node: ast.expr) -> bool:
    value = site.value(node)
    return value.is_python and not value.hint


def _is_repeatable(bound: ast.expr) -> bool:
    """True for arithmetic on integers, names and elements of tensors, which is the same when it is computed again."""
    if isinstance(bound, ast.BinOp):
        return isinstance(bound.op, _SIGNED) and _is_repeatable(bound.left) and _is_repeatable(bound.right)
    if isinstance(bound, ast.Subscript):
        return dotted(bound.value) is not None and all(map(_is_repeatable, elements_of(bound.slice)))
    return is_integer(bound) or dotted(bound) is not None
