"""Products of sizes that are computed in a tensor: read back, `torch.prod(torch.tensor(sizes)).item()`, or a size."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import is_shape
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import own_definition
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.integers.integer_arrays import whole_numbers
from graphmend_codemod.rules.proofs.numbers.integers.number_uses import NumberUses, sizes_given

Products = list[tuple[ast.expr, ast.expr]]


def size_products(site: Site, node: ast.Assign | ast.Return) -> Products:
    """The products that a statement reads back or gives as sizes, each with the sizes that it is made of."""
    if node.value is None:
        return []
    if isinstance(node, ast.Assign) and (sizes := _product(site, node.value)) is not None:
        return [(node.value, sizes)] if _is_only_a_size(site, node) else []
    found: Products = []
    for call in (part for part in walk_in_layers(node.value) if isinstance(part, ast.Call)):
        if (read := number_read(site, call, INTEGER_CAST)) is not None:
            sizes = _product(site, read)
            found += [] if sizes is None else [(call, sizes)]
        for given in sizes_given(call, site.resolve(call.func)):
            sizes = _product(site, given)
            found += [] if sizes is None else [(given, sizes)]
    return found


def products_in_front(site: Site, node: ast.Assign | ast.Return, products: Products) -> Edit:
    """The statement with `math.prod` under `torch.compile`; NotProven where that may be another number."""
    conditions = (
        _uses(site, node).conditions(site) if isinstance(node, ast.Assign) and _is_only_a_size(site, node) else []
    )
    written: dict[int, tuple[ast.expr, str]] = {}
    for part, sizes in products:
        if not is_shape(sizes) and dotted(sizes) is None:
            raise NotProven(f"`{short(sizes)}` would be computed twice; assign it to a variable first")
        asked, text = whole_numbers(site, sizes), site.text(sizes)
        # No numbers at all make a floating tensor, whose product is 1.0; and integers have 64 bits.
        limit = f"-(2**63) <= math.prod({text}) < 2**63"
        conditions += [*([] if is_shape(sizes) else [*asked, limit]), f"len({text}) > 0"]
        written[id(part)] = (part, f"math.prod({text})")
    line = site.but(written=written).text(node)
    conditions = list(dict.fromkeys(conditions))
    return two_paths(site, node, [site.compiling, *conditions], [line], imports=(*site.imports, "math"))


def _product(site: Site, product: ast.expr | None) -> ast.expr | None:
    """The sizes in `torch.prod(torch.tensor(sizes))` and `torch.tensor(sizes).prod()`."""
    if not isinstance(product, ast.Call) or product.keywords or not isinstance(product.func, ast.Attribute):
        return None
    whole = site.resolve(product.func) == "torch.prod" and len(product.args) == 1
    made = product.args[0] if whole else product.func.value
    if product.func.attr != "prod" or len(product.args) != whole or not isinstance(made, ast.Call):
        return None
    integers = all(word.arg == "dtype" and site.resolve(word.value) in INT64_NAMES for word in made.keywords)
    return made.args[0] if site.resolve(made.func) in TENSOR_MAKERS and len(made.args) == 1 and integers else None


def _is_only_a_size(site: Site, node: ast.Assign) -> bool:
    """True for a name whose every use needs a number, so that the product is read back there."""
    named = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    if not named or _product(site, node.value) is None:
        return False
    uses = _uses(site, node)
    return uses.reason is None and uses.slices


def _uses(site: Site, node: ast.Assign) -> NumberUses:
    target = node.targets[0]
    assert isinstance(target, ast.Name)
    return NumberUses(sure_calls(site), site.resolve).single(own_definition(site), target.id)
