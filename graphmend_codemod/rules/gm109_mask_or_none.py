"""mask-or-none (GM109): a mask becomes None where it masks nothing, so that products with it are left out.

`if positions[0] > 0 or torch.all(mask == 1): mask = None` reads the device back for every call, and breaks the graph,
to save products that would change nothing. Under `torch.compile` the mask stays, and holds ones alone where it would
have been None for another reason.

All uses of the value are followed through the module: results of functions, calls, layers, choices by the class of a
layer. Each has to be `if mask is not None: x = x * mask[:, None]`, where ones keep values, dtype and memory of `x` as
they are; any other use is the reason for leaving the test. There has to be one place of the mask for each position,
which Dynamo knows while it traces; in calls where there are more, as in decoding with a cache, the test stays. The
function that calls must say how many positions there are: `positions = torch.arange(x.shape[1])` where none are given,
with an `x` that goes along with the mask. Rows are not compared: a mask with more rows than its tensor is taken for
a mistake, which eager mode overlooks where all of them are ones.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.callgraph import Definition, calls_in
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.base import Clean, Contract, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.mask_products import NotAlike
from graphmend_codemod.rules.mask_uses import MaskUses
from graphmend_codemod.rules.site import Site

_SETUP = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        x = self.proj(x)
        if mask is not None:
            x = x * mask[:, :, None]
        return torch.cumsum(x, dim=1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def forward(self, x: torch.Tensor, mask=None, positions=None):
        if positions is None:
            positions = torch.arange(x.shape[1])
        kept = self._mask(mask, positions)
        return self.part(x, kept)

    def _mask(self, mask, positions):
        ...
        return kept
"""

rule = Rule(
    code="GM109",
    slug="mask-or-none",
    title="keep a mask that may hold ones alone",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(),
    examples=(
        Example(
            before="""
            kept = mask
            if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
                kept = None
            """,
            after="""
            kept = mask
            if torch.compiler.is_compiling() and (
                mask is None
                or (
                    mask.dtype in (torch.bool, torch.int64)
                    and mask.shape[1:] == positions.shape
                )
            ):
                # A mask of ones does what None does, so nothing has to be read back.
                kept = None if mask is None else mask.masked_fill(positions[0] > 0, 1)
            elif positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
                kept = None
            """,
            setup=_SETUP,
            inputs=(
                "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long)",
                "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]])",
                "torch.randn(2, 3, 4), torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.arange(5, 8)",
                "torch.randn(2, 3, 4)",
            ),
        ),
        Declined(
            source="""
            kept = mask
            if positions[0] > 0 or (mask is not None and torch.all(mask == 1)):
                kept = None
            """,
            because="`if mask is not None` in `Part.forward` does more than multiply by the mask",
            setup=_SETUP.replace("x = x * mask[:, :, None]", "x = x.flip(1)"),
        ),
        Declined(
            source="""
            kept = mask
            if mask is not None and torch.all(mask == 1):
                kept = None
            """,
            because="nothing tells how many places what it multiplies has",
            setup=_SETUP,
        ),
        Clean(
            source="""
            kept = mask
            if mask is not None and mask.dim() == 4:
                kept = None
            """,
            setup=_SETUP,
        ),
    ),
)

_COMMENT = "# A mask of ones does what None does, so nothing has to be read back."


@dataclass(frozen=True)
class _Chance:
    """`if <others> or (mask is not None and torch.all(mask == 1)): name = None`."""

    name: str
    mask: str
    may_be_none: bool
    dtypes: tuple[str, ...]
    others: tuple[ast.expr, ...]


@rule.on(ast.If, candidate="test", words=("all", "any"))
def mask_or_none(site: Site, node: ast.If) -> Verdict | None:
    """`if positions[0] > 0 or (mask is not None and torch.all(mask == 1)): mask = None`."""
    chance = _chance(site, node)
    if chance is None:
        return None
    message = f"reads from the device whether a mask masks anything: `{purity.short(node.test)}`"
    if site.torch is None:
        return Verdict(message, declined="the name `torch` is taken by something else in this module")
    if node.orelse:
        other = node.orelse[0].body[0] if isinstance(node.orelse[0], ast.If) else node.orelse[0]
        return Verdict(message, declined=f"a mask that stays takes another form: `{purity.short(other)}`")
    if len(node.body) > 1:
        return Verdict(message, declined="the branch does more than leave the mask out")
    try:
        positions = _positions(chance)
        calls = calls_in(site.source.text)
        function = next(each for each in calls.definitions.values() if each.node.lineno == _line(site))
        uses = MaskUses(site, calls)
        own = next(
            each for each in walk_scope(function.node) if isinstance(each, ast.If) and each.lineno == node.lineno
        )
        _demand_value(function, own, chance)
        uses.demand(function, chance.name, own)
        _demand_length(site, uses, function, positions)
    except NotAlike as reason:
        return Verdict(message, declined=str(reason))
    return Verdict(message, edit=_edit(site, node, chance, positions))


def _line(site: Site) -> int:
    return site.evaluator.scope.node.lineno


def _same_line(function: Definition, node: ast.If) -> ast.If:
    """The same statement in another tree of the module."""
    tests = (each for each in walk_scope(function.node) if isinstance(each, ast.If))
    return next(each for each in tests if (each.lineno, each.col_offset) == (node.lineno, node.col_offset))


def _chance(site: Site, node: ast.If) -> _Chance | None:
    target = node.body[0] if isinstance(node.body[0], ast.Assign) else None
    none = target is not None and isinstance(target.value, ast.Constant) and target.value.value is None
    if target is None or not none or len(target.targets) != 1 or not isinstance(target.targets[0], ast.Name):
        return None
    parts = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or) else [node.test]
    found = [(part, each) for part in parts if (each := _asks_for_ones(site, part)) is not None]
    if len(found) != 1:
        return None
    (asked, (mask, may_be_none, dtypes)) = found[0]
    return _Chance(target.targets[0].id, mask, may_be_none, dtypes, tuple(part for part in parts if part is not asked))


def _asks_for_ones(site: Site, node: ast.expr) -> tuple[str, bool, tuple[str, ...]] | None:
    """The mask, whether it may be None, and the dtypes in which the answer is right."""
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    found = _all_of(site, parts[-1])
    if found is None or any(ast.unparse(each) != f"{found[0]} is not None" for each in parts[:-1]):
        return None
    return found[0], len(parts) > 1, found[1]


def _all_of(site: Site, node: ast.expr) -> tuple[str, tuple[str, ...]] | None:
    """`m` for `torch.all(m == 1)`, `(m == 1).all()`, `m.all()`, `not torch.any(m != 1)`, `not torch.any(~m)`."""
    inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    call = node.operand if isinstance(node, ast.UnaryOp) and inverted else node
    if not isinstance(call, ast.Call) or call.keywords:
        return None
    name, arguments = torch_function(site.resolve(call.func)), call.args
    if name is None and isinstance(call.func, ast.Attribute):
        name, arguments = call.func.attr, [call.func.value, *call.args]
    if name != ("any" if inverted else "all") or len(arguments) != 1:
        return None
    asked = arguments[0]
    if isinstance(asked, ast.Compare) and isinstance(asked.left, ast.Name) and len(asked.ops) == 1:
        sign: type[ast.cmpop] = ast.NotEq if inverted else ast.Eq
        same = isinstance(asked.ops[0], sign) and ast.unparse(asked.comparators[0]) == "1"
        return (asked.left.id, ("bool", "int64")) if same else None
    if inverted and isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Invert):
        return (asked.operand.id, ("bool",)) if isinstance(asked.operand, ast.Name) else None
    return (asked.id, ("bool",)) if isinstance(asked, ast.Name) and not inverted else None


def _positions(chance: _Chance) -> str:
    """`p` where the other reason is `p[0] > 0`."""
    found = [name for each in chance.others if (name := _first_of(each)) is not None]
    if len(found) != 1 or len(chance.others) != 1:
        raise NotAlike("nothing tells how many places what it multiplies has: sizes may differ where it is None")
    return found[0]


def _first_of(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return None
    left = node.left
    first = isinstance(left, ast.Subscript) and isinstance(left.slice, ast.Constant) and left.slice.value == 0
    return left.value.id if first and isinstance(left, ast.Subscript) and isinstance(left.value, ast.Name) else None


def _demand_value(function: Definition, node: ast.If, chance: _Chance) -> None:
    """NotAlike unless the name holds the mask before the test."""
    if chance.name == chance.mask:
        return
    body = function.node.body
    before = body[body.index(node) - 1] if node in body and body.index(node) else None
    if before is None or ast.unparse(before) != f"{chance.name} = {chance.mask}":
        raise NotAlike(f"`{chance.name}` may hold something else than `{chance.mask}`")


def _demand_length(site: Site, uses: MaskUses, function: Definition, positions: str) -> None:
    """NotAlike unless those who give the positions make as many as `x` has places, where `x` goes with the mask."""
    callers = uses.calls.sites((function.qualname, function.node.lineno))
    given = [(uses.calls.definitions[by], arguments.get(positions)) for by, arguments in callers]
    if not given or any(_counted(site, function, positions)):
        given = [(function, ast.Name(positions))]
    for caller, argument in given:
        name = argument.id if isinstance(argument, ast.Name) else ""
        counted = set(_counted(site, caller, name))
        counted |= set(_renamed(caller, counted))
        together = [call for by, call in uses.companions if by is caller]
        if not together or not all(any(_is_one_of(each, counted) for each in _arguments(call)) for call in together):
            raise NotAlike(f"`{caller.qualname}` does not tell how many `{positions}` there are")


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _counted(site: Site, caller: Definition, name: str) -> Iterator[str]:
    """`x` for `if name is None: name = torch.arange(x.shape[1])`, where nothing else binds `name`."""
    bound = [
        node
        for node in walk_scope(caller.node)
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    ]
    for node in walk_scope(caller.node):
        given = isinstance(node, ast.If) and ast.unparse(node.test) == f"{name} is None"
        body = node.body if isinstance(node, ast.If) and given else []
        made = next((part for part in body if isinstance(part, ast.Assign) and bound == part.targets), None)
        if made is not None and isinstance(made.value, ast.Call) and _is_arange(site, made.value):
            yield from _length_of(made.value.args)


def _is_arange(site: Site, call: ast.Call) -> bool:
    plain = all(word.arg in {"device", "dtype"} for word in call.keywords)
    return plain and site.resolve_global(call.func) == "torch.arange"


def _length_of(arguments: list[ast.expr]) -> Iterator[str]:
    """`x` for `x.shape[1]` and for `a, a + x.shape[1]`."""
    if len(arguments) == 2 and isinstance(arguments[1], ast.BinOp) and isinstance(arguments[1].op, ast.Add):
        end = arguments[1]
        if ast.unparse(end.left) != ast.unparse(arguments[0]):
            return
        size: ast.expr = end.right
    elif len(arguments) == 1:
        size = arguments[0]
    else:
        return
    found = re.fullmatch(r"(\w+)\.(?:shape\[1\]|size\(1\))", ast.unparse(size))
    if found is not None:
        yield found[1]


def _renamed(caller: Definition, names: set[str]) -> Iterator[str]:
    """Other names for the same, or for a multiple of it."""
    for node in walk_scope(caller.node):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = node.value
            if (
                isinstance(value, ast.BinOp)
                and isinstance(value.op, ast.Mult)
                and isinstance(value.right, ast.Attribute)
            ):
                value = value.left
            if _is_one_of(value, names):
                yield node.targets[0].id


def _edit(site: Site, node: ast.If, chance: _Chance, positions: str) -> Edit:
    mask = chance.mask
    dtypes = ", ".join(f"{site.torch}.{each}" for each in chance.dtypes)
    of_dtype = f"{mask}.dtype in ({dtypes})" if len(chance.dtypes) > 1 else f"{mask}.dtype == {dtypes}"
    of_shape = f"{mask}.shape[1:] == {positions}.shape"
    filled = f"{mask}.masked_fill({site.text(chance.others[0])}, 1)"
    word = "elif" if site.is_elif(node) else "if"
    if chance.may_be_none:
        filled = f"None if {mask} is None else {filled}"
        whole = f"{mask} is None or ({of_dtype} and {of_shape})"
        lines = [f"{mask} is None", "or (", f"    {of_dtype}", f"    and {of_shape}", ")"]
        short = site.indentation(1) + len(whole) <= site.line_limit
        inside = "\n".join(f"    {line}" for line in ([whole] if short else lines))
        header = f"{word} {site.compiling} and (\n{inside}\n):"
    else:
        header = f"{word} {site.compiling} and {of_dtype} and {of_shape}:"
    parts = (f"{header}\n    {_COMMENT}\n    {chance.name} = {filled}\nel", site.original(node))
    return Edit((Replacement(site.span(node), parts),), imports=site.imports)
