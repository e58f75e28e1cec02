"""Where a statement calls or reads a recurrent layer: asked of every statement, so on the path of the commit hook."""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.project.summary.candidates import is_named_recurrent
from graphmend_codemod.rules.framework.site import Site

NESTED = {"LSTM": "(0, (1, 2))", "GRU": "(0, 1)", "RNN": "(0, 1)", "RNNBase": "{2: (0, 1), 3: (0, (1, 2))}"}
"""The classes, with the shape of their result as `torch.func` wants it; `RNNBase` is any of them."""


def layers_in(site: Site, statement: ast.stmt) -> list[ast.Attribute]:
    """The places in a simple statement where it reads attributes of the instance that are recurrent layers."""
    if not _kinds(site):
        return []
    return [part for part in walk_in_layers(statement) if isinstance(part, ast.Attribute) and kind_of(site, part)]


def kind_of(site: Site, layer: ast.expr) -> str | None:
    """`LSTM`, `GRU` or `RNN`, as far as the constructor tells, `RNNBase` where it may make either; None for others."""
    if not is_attribute(layer, site.evaluator.scope.self_name):
        return None
    kind = _kinds(site).get(layer.attr)
    made = torch_api.torch_module_class(site.value(layer).instance_of)
    return made if made in NESTED else kind if kind == "RNNBase" and made is None else None


def _kinds(site: Site) -> dict[str, str]:
    return site.remembered("recurrent layers", site.evaluator.scope.node, lambda: _attributes(site), anywhere=True)


def _attributes(site: Site) -> dict[str, str]:
    """Attributes of the instance that are recurrent layers: made by its class, or so in a recorded run."""
    facts = site.evaluator.scope.class_facts
    if facts is None:
        return {}
    seen = site.evaluator.seen.items()
    made = {name.removeprefix("self."): kind for name, kind in seen if name.startswith("self.")}
    made |= {name: fact.callee for name, fact in facts.attributes.items() if fact.callee is not None}
    kinds = {name: torch_api.torch_module_class(callee) for name, callee in made.items()}
    found = {name: kind for name, kind in kinds.items() if kind in NESTED}
    unclear = [name for name in site.evaluator.scope.outline.words if name in facts.attributes and name not in made]
    makes = bool(unclear) and _makes_some(site.source.text)
    if any(makes or is_named_recurrent(each) for each in unclear):
        from graphmend_codemod.rules.proofs.untraced.layers import may_be_recurrent  # a commit hook waits for it

        wanted = (name for name in unclear if makes or is_named_recurrent(name))
        found |= {name: "RNNBase" for name in wanted if may_be_recurrent(site, name)}
    return found


@lru_cache(maxsize=8)
def _makes_some(text: str) -> bool:
    """True for a file that spells the class of a recurrent layer: any attribute may hold one."""
    return any(f"{kind}(" in text for kind in NESTED)
