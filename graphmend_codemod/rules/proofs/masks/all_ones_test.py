"""Recognise tests of whether a mask is all ones."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from graphmend_codemod.analysis.patterns import is_not, operands_of
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.masks.mask_products import is_not_none


@dataclass(frozen=True)
class AllOnesTest:
    """`<others> or (mask is not None and torch.all(mask == 1))`, the other way round where not `for_ones`."""

    mask: str
    may_be_none: bool
    dtypes: tuple[str, ...]
    others: tuple[ast.expr, ...]
    for_ones: bool


def question_of(site: Site, test: ast.expr) -> AllOnesTest | None:
    """The question that a whole test asks; None where there is none."""
    parts = operands_of(test, ast.Or)
    found = [(part, each) for part in parts if (each := _asks(site, part)) is not None]
    if len(found) != 1:
        return None
    (asked, (mask, may_be_none, dtypes, for_ones)) = found[0]
    if not for_ones and (may_be_none or len(parts) > 1):
        return None
    return AllOnesTest(mask, may_be_none, dtypes, tuple(part for part in parts if part is not asked), for_ones)


def _asks(site: Site, node: ast.expr) -> tuple[str, bool, tuple[str, ...], bool] | None:
    """The mask, whether it may be None, the dtypes in which the answer is right, and whether yes means ones."""
    parts = operands_of(node, ast.And)
    found = asks_for_ones(site, parts[-1])
    if found is None or any(not is_not_none(each, found[0]) for each in parts[:-1]):
        return None
    return found[0], len(parts) > 1, found[1], found[2]


def asks_for_ones(site: Site, node: ast.expr) -> tuple[str, tuple[str, ...], bool] | None:
    """`m` for `torch.all(m == 1)`, `(m == 1).all()`, `m.all()`, `not torch.any(m != 1)`, `not torch.any(~m)`.

    With or without `not`: the last value tells whether the answer is yes for ones.
    """
    inverted = is_not(node)
    call = node.operand if isinstance(node, ast.UnaryOp) and inverted else node
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    name, arguments = site.operation(call)
    if name not in ("any", "all") or len(arguments) != 1:
        return None
    asked, for_ones = arguments[0], inverted == (name == "any")
    if isinstance(asked, ast.Compare) and isinstance(asked.left, ast.Name) and len(asked.ops) == 1:
        sign: type[ast.cmpop] = ast.NotEq if name == "any" else ast.Eq
        one = asked.comparators[0]
        number = one.value if isinstance(one, ast.Constant) else None
        same = isinstance(asked.ops[0], sign) and type(number) is int and number == 1
        return (asked.left.id, ("bool", "int64"), for_ones) if same else None
    if name == "any":
        zeros = asked.operand if isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Invert) else None
        return (zeros.id, ("bool",), for_ones) if isinstance(zeros, ast.Name) else None
    return (asked.id, ("bool",), for_ones) if isinstance(asked, ast.Name) else None


def of_dtype(site: Site, mask: str, dtypes: tuple[str, ...]) -> str:
    """`mask.dtype == torch.bool`."""
    names = [f"{site.torch}.{each}" for each in dtypes]
    return f"{mask}.dtype in ({', '.join(names)})" if len(names) > 1 else f"{mask}.dtype == {names[0]}"
