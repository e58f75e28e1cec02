"""Where a statement calls or reads a recurrent layer: asked of every statement, so on the path of the commit hook."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.rules.framework.site import Site

NESTED = {"LSTM": "(0, (1, 2))", "GRU": "(0, 1)", "RNN": "(0, 1)"}
"""The classes, with the shape of their result as `torch.func` wants it."""


def layers_in(site: Site, statement: ast.stmt) -> list[ast.Attribute]:
    """The places in a simple statement where it reads attributes of the instance that are recurrent layers."""
    function = site.evaluator.scope.node
    names = site.remembered("recurrent layers", function, lambda: _attributes(site), anywhere=True)
    if not names:
        return []
    return [
        part for part in walk_in_layers(statement) if isinstance(part, ast.Attribute) and _is_one(site, part, names)
    ]


def _attributes(site: Site) -> frozenset[str]:
    """Attributes of the instance that are recurrent layers: made by its class, or so in a recorded run."""
    facts = site.evaluator.scope.class_facts
    if facts is None:
        return frozenset()
    seen = site.evaluator.seen.items()
    made = {name.removeprefix("self."): kind for name, kind in seen if name.startswith("self.")}
    made |= {name: fact.callee for name, fact in facts.attributes.items() if fact.callee is not None}
    return frozenset(name for name, callee in made.items() if torch_api.torch_module_class(callee) in NESTED)


def _is_one(site: Site, node: ast.Attribute, names: frozenset[str]) -> bool:
    own = is_name(node.value, site.evaluator.scope.self_name)
    return own and node.attr in names and kind_of(site, node) is not None


def kind_of(site: Site, layer: ast.expr) -> str | None:
    """`LSTM`, `GRU` or `RNN`, as far as the constructor tells; None for any other."""
    made = torch_api.torch_module_class(site.value(layer).instance_of)
    return made if made in NESTED else None
