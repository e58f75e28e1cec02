"""What is written for an expression that chooses places by the data, so that the graph carries how many there are."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import elements_of, is_whole
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import may_be_mask

_ASKED = frozenset({"return_inverse", "return_counts", "dim"})
_COUNT: dict[str | None, tuple[int, frozenset[str]]] = {
    "unique": (2, _ASKED | {"sorted"}),
    "unique_consecutive": (1, _ASKED),
    "bincount": (3, frozenset({"weights", "minlength"})),
}
"""How many arguments without a name these may get, and which with one.

`torch.unique_consecutive(x, False, True)` gives an empty tensor for the counts (torch 2.13), so flags need their names.
"""


def search_in_graph(site: Site, node: ast.Call, name: str | None, owner: ast.expr | None) -> str | None:
    """The call of a helper that stands in the graph for a search by the data; None for what is no such search.

    `name` is that of the function of torch, `owner` the tensor whose method is called: `torch.nonzero(x)`,
    `x.unique()`.
    """
    operands = node.args if owner is None else [owner, *node.args]
    if owner is not None and isinstance(node.func, ast.Attribute):
        name = node.func.attr
    words = {word.arg: word.value for word in node.keywords}
    as_tuple = words.pop("as_tuple", None)
    if name == "masked_select" and len(operands) == 2 and not words:
        return f"_masked_select_in_graph({', '.join(map(site.text, operands))})"
    if name in _COUNT and as_tuple is None:
        most, named = _COUNT[name]
        known = owner is None or site.value(owner).is_tensor  # `lib.bincount(x)` is a function of a module
        if not known or not operands or len(operands) > most or not named >= set(words):
            return None
        given = [*map(site.text, operands), *(f"{word}={site.text(value)}" for word, value in words.items())]
        return f"_{name}_in_graph({', '.join(given)})"
    if name == "repeat_interleave":
        return _repeated(site, operands, words) if as_tuple is None else None
    known = as_tuple is None or isinstance(as_tuple, ast.Constant)
    if len(operands) != 1 or words or not known or name not in {"nonzero", "argwhere", "where"}:
        return None
    apart = name == "where" or (isinstance(as_tuple, ast.Constant) and bool(as_tuple.value))
    operand = site.text(operands[0])
    return f"_nonzero_as_operator({operand}).unbind(1)" if apart else f"_nonzero_in_graph({operand})"


def _repeated(site: Site, operands: Sequence[ast.expr], words: dict[str | None, ast.expr]) -> str | None:
    """`torch.repeat_interleave(x, repeats, dim=0)`, or of `repeats` alone, whose total is not given."""
    given = dict(zip(("input", "repeats", "dim"), operands, strict=False)) | words
    if len(operands) > 3 or set(given) - {"input", "repeats", "dim"} or "input" not in given:
        return None
    if set(given) == {"input"}:
        return f"_repeats_as_operator({site.text(given['input'])})" if site.value(given["input"]).is_tensor else None
    if "repeats" not in given:
        return None
    along = f", dim={site.text(given['dim'])}" if "dim" in given else ""
    return f"_repeated_in_graph({site.text(given['input'])}, {site.text(given['repeats'])}{along})"


def indexed(site: Site, node: ast.Subscript) -> str | None:
    """`x[_places_in_graph(mask)]` for `x[mask]`."""
    parts = elements_of(node.slice)
    masks = [each for each in parts if may_be_mask(site, each)]
    if not masks or any(isinstance(each, ast.Starred) for each in parts):
        return None
    owner = site.operand(node.value)
    while parts and is_whole(parts[-1]):
        parts = parts[:-1]
    if len(parts) == 1:
        return f"{owner}[_places_in_graph({site.text(parts[0])})]"
    inside = [
        f"*_places_in_graph({site.text(each)})" if any(each is mask for mask in masks) else _index(site, each)
        for each in parts
    ]
    return f"{owner}[({', '.join(inside)})]"


def _index(site: Site, node: ast.expr) -> str:
    """An index as an element of a tuple, in which no slice can be spelled with colons."""
    if not isinstance(node, ast.Slice):
        return site.text(node)
    bounds = ["None" if each is None else site.text(each) for each in (node.lower, node.upper)]
    return f"slice({', '.join([*bounds, *([site.text(node.step)] if node.step is not None else [])])})"
