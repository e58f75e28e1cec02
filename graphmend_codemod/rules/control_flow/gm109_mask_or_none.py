"""mask-or-none (GM109): a data-dependent branch that sets a mask to None if it masks nothing.

`if positions[0] > 0 or torch.all(mask == 1): mask = None` reads the device back for every call, and breaks the graph,
to save products that would change nothing. Under `torch.compile` the mask stays, and holds ones alone where it would
have been None for another reason.

All uses of the value are followed through the module: results of functions, calls, layers, choices by the class of a
layer. Each has to be `if mask is not None: x = x * mask[:, None]`, where ones keep values, dtype and memory of `x` as
they are; any other use is the reason for leaving the test. There has to be one place of the mask for each position,
which Dynamo knows while it traces; in calls where there are more, as in decoding with a cache, the test stays. The
function that calls must say how many positions there are: `positions = torch.arange(x.shape[1])` where none are given,
with an `x` that goes along with the mask. Rows are not compared: a mask with
more rows than its tensor is taken for a mistake, which eager mode overlooks where all of them are ones.

A mask that stays may take the form that is added to scores: `mask = prepare(mask, x.dtype)`. Of ones that makes zeros,
which is known of transformers' functions. Under `torch.compile` it is always prepared. Each use has to be a sum that a
softmax of a given dtype reads next, `scaled_dot_product_attention`, or an attention function out of transformers' table
that is told `is_causal=False`: without that word some of them look at all places for zeros, and for None only at
earlier ones. Where flash attention would get the mask as it is, the test stays.

A hook on such a layer, and a `forward` that is assigned to the instance, sees the mask of ones in place of None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import (
    all_given,
    asks_for_none,
    is_literal,
    is_name,
    is_none,
    only_target,
    same_statement,
    size_asked,
    stores_name,
)
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.analysis.value_flow import given_for
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import before_if, judged, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import own_definition
from graphmend_codemod.rules.proofs.masks.all_ones_test import AllOnesTest, of_dtype, question_of
from graphmend_codemod.rules.proofs.masks.mask_products import Products
from graphmend_codemod.rules.proofs.masks.mask_uses import MaskUses
from graphmend_codemod.rules.proofs.masks.prepared_masks import PreparedMask, forms_of

rule = Rule(
    __name__,
    __doc__,
    title="keep a mask that may be all ones",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="products and sums with the mask are always computed",
        compiled_state=ASKS_CLASSES,
    ),
)

_COMMENT = "# A mask of ones does what None does, so nothing has to be read back."


@rule.on(ast.If, candidate="test", words=("all", "any"))
def mask_or_none(site: Site, node: ast.If) -> Diagnostic | None:
    """`if positions[0] > 0 or (mask is not None and torch.all(mask == 1)): mask = None`."""
    question = question_of(site, node.test)
    if question is None:
        return None
    for_ones, otherwise = (node.body, node.orelse) if question.for_ones else (node.orelse, node.body)
    name = _made_none(for_ones)
    if name is None:
        return None
    message = f"data-dependent branch: tests whether a mask masks anything: `{speculation.short(node.test)}`"
    if len(for_ones) > 1:
        return Diagnostic(message, declined="the branch does more than drop the mask")
    calls, scope = calls_in(site.source.text), site.evaluator.scope

    def judge() -> Diagnostic:
        return judged(message, lambda: _edit_for(site, calls, node, question, name, otherwise))

    # A branch may be asked about twice, where another rule needs to know who else refers to a tensor.
    place = (node.lineno, node.col_offset)
    return calls.remembered("mask or none", (place, scope.module, scope.index), judge)


def _edit_for(
    site: Site, calls: ModuleCalls, node: ast.If, question: AllOnesTest, name: str, otherwise: list[ast.stmt]
) -> Edit:
    """The edit; NotProven with the condition that fails."""
    function = own_definition(site)
    own = same_statement(function.node, node)
    assert isinstance(own, ast.If)
    forms = forms_of(otherwise, name, question.mask) if otherwise else []
    if forms:
        if question.others or question.may_be_none:
            raise NotProven(f"the branch that keeps the mask changes its form: `{speculation.short(forms[0].value)}`")
        return PreparedMask(site, calls, function, name, question.mask, question.dtypes).edit(node, own, forms)
    positions = _positions(question)
    products = Products(site, calls, {})
    uses = MaskUses(site, calls, products)
    if not otherwise:
        _demand_value(function, own, name, question.mask)
    uses.demand(function, name, own)
    if positions is None:
        raise NotProven("cannot infer the size of the tensor it multiplies; the sizes may differ when the mask is None")
    demand_length(site, uses, function, positions)
    scope = site.evaluator.scope
    for each in products.absent:
        if each in scope.locals | scope.closure:
            raise NotProven(f"the name `{each}` means something else in `{site.function}`")
    asked = [*uses.conditions(), *(f"{each} is None" for each in products.absent)]
    return _edit(site, node, name, question, positions, asked)


def _made_none(block: list[ast.stmt]) -> str | None:
    """The name that the first statement of a block gives None."""
    first = block[0] if block else None
    if not isinstance(first, ast.Assign) or len(first.targets) != 1 or not isinstance(first.targets[0], ast.Name):
        return None
    return first.targets[0].id if is_none(first.value) else None


def _positions(question: AllOnesTest) -> str | None:
    """`p` where the other reason is `p[0] > 0`."""
    found = [name for each in question.others if (name := _first_of(each)) is not None]
    return found[0] if len(found) == len(question.others) == 1 else None


def _first_of(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return None
    left = node.left
    first = isinstance(left, ast.Subscript) and is_literal(left.slice, 0)
    return left.value.id if first and isinstance(left, ast.Subscript) and isinstance(left.value, ast.Name) else None


def _demand_value(function: Definition, node: ast.If, name: str, mask: str) -> None:
    """NotProven unless the name holds the mask before the test."""
    if name == mask:
        return
    body = function.node.body
    before = body[body.index(node) - 1] if node in body and body.index(node) else None
    plain = is_name(only_target(before), name)
    if not isinstance(before, ast.Assign) or not plain or not is_name(before.value, mask):
        raise NotProven(f"`{name}` may differ from `{mask}`")


def _edit(site: Site, node: ast.If, name: str, question: AllOnesTest, positions: str, classes: list[str]) -> Edit:
    mask = question.mask
    right_dtype = of_dtype(site, mask, question.dtypes)
    of_shape = f"{mask}.shape[1:] == {positions}.shape"
    asked = [site.compiling, *classes, f"isinstance({positions}, {site.torch}.Tensor)"]
    filled = f"{mask}.masked_fill({site.text(question.others[0])}, 1)"
    word = "elif" if site.is_elif(node) else "if"
    if question.may_be_none:
        filled = f"None if {mask} is None else {filled}"
        whole = f"{mask} is None or ({right_dtype} and {of_shape})"
        lines = [f"{mask} is None", "    or (", f"        {right_dtype}", f"        and {of_shape}", "    )"]
        short = site.indentation(1) + len(whole) <= site.line_limit
        inside = whole if short else "\n    ".join(lines)
        header = site.header(word, [*asked, f"({inside})" if short else f"(\n        {inside}\n    )"])
    else:
        header = site.header(word, [*asked, right_dtype, of_shape])
    return before_if(site, node, (under(header, _COMMENT, f"{name} = {filled}"),))


# Positions that a function is given: how many there are, by who makes them


def demand_length(site: Site, uses: MaskUses, function: Definition, positions: str) -> None:
    """NotProven unless those who give the positions make as many as `x` has places, where `x` goes with the mask."""
    given = [(each.caller, each.argument) for each in given_for(uses.calls, function, positions)]
    if not given or any(_counted(site, function, positions)):
        given = [(function, ast.Name(positions))]
    for caller, argument in given:
        name = argument.id if isinstance(argument, ast.Name) else ""
        counted = set(_counted(site, caller, name))
        counted |= set(_renamed(caller, counted))
        together = [call for by, call in uses.companions if by is caller]
        if not together or not all(any(_is_one_of(each, counted) for each in all_given(call)) for call in together):
            raise NotProven(f"cannot infer the length of `{positions}` from `{caller.qualname}`")


def _is_one_of(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _counted(site: Site, caller: Definition, name: str) -> Iterator[str]:
    """`x` for `if name is None: name = torch.arange(x.shape[1])`, where nothing else binds `name`."""
    bound = [node for node in walk_scope(caller.node) if stores_name(node, name)]
    for node in walk_scope(caller.node):
        given = isinstance(node, ast.If) and asks_for_none(node.test, (ast.Is,)) and is_name(node.test.left, name)
        body = node.body if isinstance(node, ast.If) and given else []
        made = next((part for part in body if isinstance(part, ast.Assign) and bound == part.targets), None)
        if made is not None and isinstance(made.value, ast.Call) and _is_arange(site, made.value):
            yield from _length_of(made.value.args)


def _is_arange(site: Site, call: ast.Call) -> bool:
    plain = all(word.arg in {"device", "dtype"} for word in call.keywords)
    return plain and site.resolve_global(call.func) == "torch.arange"


def _length_of(arguments: list[ast.expr]) -> Iterator[str]:
    """`x` for `x.shape[1]`."""
    asked = size_asked(arguments[0]) if len(arguments) == 1 else None
    if asked is not None and is_literal(asked[1], 1) and isinstance(asked[0], ast.Name):
        yield asked[0].id


def _renamed(caller: Definition, names: set[str]) -> Iterator[str]:
    """Other names for the same, or for a multiple of it."""
    for node in walk_scope(caller.node):
        target = only_target(node)
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and _is_one_of(_unscaled(node.value), names):
            yield target.id


def _unscaled(node: ast.expr) -> ast.expr:
    """`x` for `x * self.scale`."""
    scaled = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Attribute)
    return node.left if scaled and isinstance(node, ast.BinOp) else node
