"""Products of sizes that are computed in a tensor and read back: `torch.prod(torch.tensor(x.shape[1:])).item()`."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front
from graphmend_codemod.rules.proofs.numbers.integer_arrays import whole_numbers
from graphmend_codemod.rules.proofs.sizes.size_spellings import is_shape


def read_products(site: Site, node: ast.expr) -> list[tuple[ast.Call, ast.expr]]:
    """The products that an expression reads back, each with the sizes."""
    calls = [part for part in walk_in_layers(node) if isinstance(part, ast.Call)]
    return [(part, sizes) for part in calls if (sizes := _read_product(site, part)) is not None]


def products_in_front(site: Site, node: ast.stmt, products: list[tuple[ast.Call, ast.expr]]) -> Edit:
    """The statement with `math.prod` under `torch.compile`; NotProven where that may be another number."""
    conditions: list[str] = []
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
    path = in_front(site, [node], [site.compiling, *dict.fromkeys(conditions)], [line])
    return Edit((path,), imports=(*site.imports, "math"))


def _read_product(site: Site, node: ast.Call) -> ast.expr | None:
    """The sizes in `torch.prod(torch.tensor(sizes)).item()` and `int(torch.tensor(sizes).prod())`."""
    product = number_read(site, node, INTEGER_CAST)
    if not isinstance(product, ast.Call) or product.keywords or not isinstance(product.func, ast.Attribute):
        return None
    whole = site.resolve(product.func) == "torch.prod" and len(product.args) == 1
    made = product.args[0] if whole else product.func.value
    if product.func.attr != "prod" or len(product.args) != whole or not isinstance(made, ast.Call):
        return None
    integers = all(word.arg == "dtype" and site.resolve(word.value) in INT64_NAMES for word in made.keywords)
    return made.args[0] if site.resolve(made.func) in TENSOR_MAKERS and len(made.args) == 1 and integers else None
