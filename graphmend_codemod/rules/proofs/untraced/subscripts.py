"""Subscripts that Dynamo cannot trace: by a mask, by a list of bools, cut at a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import elements_of
from graphmend_codemod.analysis.scope import of_kind
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import is_list_of_tests, is_mask, is_number, may_be_mask
from graphmend_codemod.rules.proofs.untraced.kinds import CAPTURE, Untraced


def chosen(site: Site, node: ast.Subscript) -> Untraced | None:
    """`x[mask]`, read, and written in `x[mask] += 1`, which reads it."""
    parts = elements_of(node.slice)
    if not _is_read(site, node) or site.value(node.value).is_python:
        return None
    if any(is_list_of_tests(site, each) for each in parts):
        advice = "Dynamo turns the list into a mask; index with a list of the integers at which it is True"
        return Untraced(node, "boolean-mask indexing by a list of bools (data-dependent shape)", advice)
    first = parts[0] if parts else node.slice
    if isinstance(first, (ast.Slice, ast.Constant)) or not is_mask(site, first):
        return None
    return masked(node)


def chosen_anywhere(site: Site, node: ast.Subscript) -> Untraced | None:
    """The same with the mask in any place, as in `x[:, mask]`, and where less tells that it is one."""
    if not _is_read(site, node) or site.value(node.value).is_python:
        return None
    masks = (each for each in elements_of(node.slice) if not isinstance(each, (ast.Slice, ast.Constant)))
    return masked(node) if any(may_be_mask(site, each) for each in masks) else None


def _is_read(site: Site, node: ast.Subscript) -> bool:
    statement = site.place.statement
    return isinstance(node.ctx, ast.Load) or (isinstance(statement, ast.AugAssign) and statement.target is node)


def masked(node: ast.Subscript) -> Untraced:
    """What is said of an index by a mask."""
    return Untraced(
        node,
        "boolean-mask indexing (data-dependent shape)",
        "no static-shape rewrite; manually compute all elements and select with `torch.where`, or try " + CAPTURE,
    )


def cut(site: Site, node: ast.Subscript) -> Untraced | None:
    """`x[:t]`."""
    return sized_by(site, node, bounds(node))


def bounds(node: ast.Subscript) -> list[ast.expr]:
    """Where the slices of an index begin and end."""
    found = [each for part in of_kind(elements_of(node.slice), ast.Slice) for each in (part.lower, part.upper)]
    return [each for each in found if each is not None]


def unpacked(node: ast.expr, spread: ast.Starred, *, sure: bool = True) -> Untraced:
    """What is said of `x.permute(*order)`, where `order` is a tensor."""
    what = "is a tensor" if sure else "may be a tensor, or an array of NumPy"
    advice = f"`{speculation.short(spread.value)}` {what}; manually keep a list of Python numbers in its place"
    return Untraced(node, "unpacks a tensor into numbers (device sync)", advice)


def sized_by(site: Site, node: ast.expr, sizes: Iterable[ast.expr]) -> Untraced | None:
    given = [each for each in sizes if each.__class__ is not ast.Constant]
    spread = next((each for each in given if isinstance(each, ast.Starred) and site.value(each.value).is_tensor), None)
    if spread is not None:
        return unpacked(node, spread)
    tensor = next((each for each in given if is_number(site, each)), None)
    if tensor is None:
        return None
    advice = (
        f"`{speculation.short(tensor)}` is a tensor; "
        "manually take the size from `.shape`, or from the Python value it was built from"
    )
    return Untraced(node, "uses a tensor as a size (device sync)", advice)
