"""product-with-mask (GM108): `if not torch.all(mask == 1): x = x * mask`.

The test saves a product that would change nothing, and costs more than that: Dynamo breaks the graph, and the device is
waited for. Under `torch.compile` the product stands without the test, where it keeps dtype and shape, so that by
ones alone it gives the same numbers; Dynamo knows this while it traces. Eager mode keeps its test.

A mask of ones alone that does not fit the tensor is an error then, which eager mode never gets to.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.narrowing import narrow
from graphmend_codemod.analysis.patterns import all_names, is_name
from graphmend_codemod.rules.framework.edits import before_if, under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import split
from graphmend_codemod.rules.proofs.masks.all_ones_test import asks_for_ones, of_dtype
from graphmend_codemod.rules.proofs.masks.mask_products import Product, is_view, product_of
from graphmend_codemod.rules.proofs.memory.identity import asked_of_names
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write

rule = Rule(
    __name__,
    __doc__,
    title="multiply by the mask without testing whether it is all ones",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="the product is always computed",
        compiled_exceptions="kept; a mask of ones alone that does not fit its tensor raises one",
        saves_masks=True,
    ),
)

_COMMENT = "# Ones change nothing: no need to read back whether there is anything else."


@rule.on(ast.If, candidate="test")
def product_with_mask(site: Site, node: ast.If) -> Diagnostic | None:
    """`if mask is not None and not torch.all(mask == 1): x = x * mask[:, None]`."""
    if node.orelse or len(node.body) > 2 or (product := product_of(node.body)) is None:
        return None
    condition = split(site, node.test)
    if condition is None or len(condition.tensors) != 1:
        return None
    asked = asks_for_ones(site, condition.tensors[0])
    if asked is None or asked[2]:
        return None
    mask, dtypes, _ = asked
    if mask not in all_names(product.factor):
        return None
    message = f"data-dependent branch: tests whether a mask is all ones: `{speculation.short(node.test)}`"
    if not is_view(product.factor, mask):
        return Diagnostic(message, declined=f"`{speculation.short(product.factor)}` is not a view of the mask")
    reason = condition.again or _why_not(site, node, product)
    if reason is not None:
        return Diagnostic(message, declined=reason)
    target, factor = product.target.id, site.operand(product.factor)
    conditions = [
        site.compiling,
        *(site.operand_of_and(each) for each in condition.static),
        *(each for each in _types(site, node, product, mask)),
        f"{target}.is_floating_point()",
        *site.keeps_graph([product.target]),
        of_dtype(site, mask, dtypes),
        site.call(
            f"{site.torch}.broadcast_shapes(",
            [f"{target}.shape", f"{factor}.shape"],
            deeper=1,
            after=f") == {target}.shape",
        ),
    ]
    conditions += [] if product.dtype is None else [f"{site.text(product.dtype)} == {target}.dtype"]
    header = site.header("elif" if site.is_elif(node) else "if", conditions)
    return Diagnostic(message, edit=before_if(site, node, (under(header, _COMMENT, ""), site.original(node.body[-1]))))


def _types(site: Site, node: ast.If, product: Product, mask: str) -> list[str]:
    """Conditions that ask for a tensor where only a hint says so, as of a mask that is an array of NumPy."""
    names = dict.fromkeys([product.target.id, mask])
    env = dict(site.place.env)
    narrow(site.evaluator, node.test, True, env)
    unsure = [name for name in names if (known := env.get(name)) is None or not known.is_tensor or known.hint]
    return [f"isinstance({name}, {site.torch}.Tensor)" for name in unsure]


def _is_bound(site: Site, node: ast.If, name: str) -> bool:
    """True when a statement that certainly ran gave the name a value."""
    before = [each for each in site.evaluator.scope.node.body if each.lineno < node.lineno]
    given = [target for each in before if isinstance(each, ast.Assign) for target in each.targets]
    return site.is_bound(name) or any(is_name(each, name) for each in given)


def _why_not(site: Site, node: ast.If, product: Product) -> str | None:
    name = product.target.id
    if product.dtype is not None and not _is_bound(site, node, product.dtype.id):
        return f"`{product.dtype.id}` may be unbound before the branch"
    if (told := asked_of_names(site, [name])) is not None:
        return f"`{told}` tells one tensor from another, and the product is a new one"
    try:
        demand_no_write(site, node, {name})
    except NotProven as reason:
        return str(reason)
    return None
