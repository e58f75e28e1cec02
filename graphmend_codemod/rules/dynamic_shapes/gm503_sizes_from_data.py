"""sizes-from-data (GM503): `split` or `repeat_interleave` with sizes read from a tensor.

`x.split(lengths.tolist())` reads the sizes back to Python. Where the tensor was built from a list that nothing has
changed since then, under any name, the list has them: it is used under `torch.compile`, and eager mode reads the tensor
as before. Where the sizes come from the data itself,
no shape behind them is known while tracing; the fix lies with whoever calls the model, who often has the numbers as
Python integers: hand them down as a list, give `repeat_interleave` its `output_size`, or work with masks over a padded
tensor.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation, torch_api
from graphmend_codemod.analysis.scope import walk_scope
from graphmend_codemod.core.findings import Edit, Replacement, Safety
from graphmend_codemod.rules.framework.reasons import name_taken
from graphmend_codemod.rules.framework.rule import Clean, Contract, Cost, Declined, Example, Rule, Verdict
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.list_changes import ListChanges

_SETUP = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, parts: list[torch.Tensor], counts: torch.LongTensor):
        lengths_list = [part.shape[0] for part in parts]
        lengths = torch.tensor(lengths_list)
        ...
"""

rule = Rule(
    code="GM503",
    slug="sizes-from-data",
    title="take sizes from the list that a tensor was built from",
    documentation=__doc__,
    safety=Safety.SAFE,
    contract=Contract(cost=Cost.NONE),
    examples=(
        Example(
            before="""
            return [part * 2 for part in x.split(lengths.tolist())]
            """,
            after="""
            return [part * 2 for part in x.split(lengths_list if torch.compiler.is_compiling() else lengths.tolist())]
            """,
            setup=_SETUP,
            inputs=("torch.ones(5, 2), [torch.ones(2), torch.ones(3)], torch.ones(2, dtype=torch.long)",),
        ),
        Declined(
            source="""
            return x.split(counts.tolist())
            """,
            because="are data",
            setup=_SETUP,
        ),
        Declined(
            source="""
            return torch.repeat_interleave(x, counts, dim=0)
            """,
            because="are data",
            setup=_SETUP,
        ),
        Clean(
            source="""
            return x.split(lengths_list)
            """,
            setup=_SETUP,
        ),
    ),
)


@rule.on(
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.For),
    words=("tolist", "repeat_interleave"),
    here=True,
)
def sized_by_tensor(site: Site, node: ast.stmt) -> Verdict | None:
    """`x.split(t.tolist())` and `repeat_interleave(x, t)`."""
    roots = [node.iter] if isinstance(node, ast.For) else [node]
    for call in [part for root in roots for part in [root, *walk_scope(root)] if isinstance(part, ast.Call)]:
        found = _judge(site, call)
        if found is not None:
            return found
    return None


def _name(site: Site, call: ast.Call) -> tuple[str, list[ast.expr]]:
    """The name of a torch function or method, and its arguments behind the tensor."""
    name = torch_api.torch_function(site.resolve(call.func))
    if name is not None:
        return name, call.args[1:]
    if isinstance(call.func, ast.Attribute) and site.resolve(call.func) is None:
        return call.func.attr, call.args
    return "", []


def _judge(site: Site, call: ast.Call) -> Verdict | None:
    name, arguments = _name(site, call)
    if name == "repeat_interleave":
        counted = any(word.arg == "output_size" for word in call.keywords)
        if counted or not arguments or not site.value(arguments[0]).is_tensor:
            return None
        message = f"`repeat_interleave` with counts in a tensor (data-dependent shape): `{speculation.short(call)}`"
        return Verdict(message, declined="the counts are data; pass `output_size=` if you know their sum")
    if name not in {"split", "split_with_sizes", "tensor_split"}:
        return None
    sizes = next((argument for argument in arguments if _listed(argument) is not None), None)
    tensor = _listed(sizes) if sizes is not None else None
    if tensor is None or sizes is None or site.value(tensor).is_python:
        return None
    message = f"splits by sizes read from a tensor (device sync): `{speculation.short(call)}`"
    if site.torch is None:
        return Verdict(message, declined=name_taken())
    source = _list_of(site, tensor)
    if source is None:
        return Verdict(
            message,
            declined=(
                f"the sizes in `{speculation.short(tensor)}` are data; "
                "compute them from `.shape` or keep them in a Python list"
            ),
        )
    assert isinstance(tensor, ast.Name)
    changed = _changed(site, tensor.id, source, call.lineno)
    if changed is not None:
        because = f"`{changed}` may change `{source}` or `{tensor.id}`; build the tensor after it"
        return Verdict(message, declined=because)
    parts = (f"{source} if {site.compiling} else ", site.original(sizes))
    return Verdict(message, edit=Edit((Replacement(site.span(sizes), parts),), imports=site.imports))


def _changed(site: Site, tensor: str, source: str, line: int) -> str | None:
    """What may have changed the list or the tensor since the one was built from the other."""
    origins, scope = site.flow.origins, site.evaluator.scope
    assert origins is not None
    function = origins.calls.at(scope.node.lineno)
    if function is None:
        return site.function
    changes = ListChanges(origins.calls, lambda name: scope.index.resolve(site.summary.name, name))
    found = changes.before(function, tensor, source, line - 1)
    return None if found is None else " ".join(found.split())


def _listed(node: ast.expr) -> ast.expr | None:
    """`t` for `t.tolist()`."""
    reads = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"
    return node.func.value if reads else None  # type: ignore[attr-defined]


def _list_of(site: Site, node: ast.expr) -> str | None:
    """The list that a tensor was built from, if the module tells that it has the same numbers here."""
    origins, function = site.flow.origins, site.evaluator.scope.node
    if origins is None or not isinstance(node, ast.Name):
        return None
    built = dict(site.flow.lists) | dict(origins.builders.get((site.function, function.lineno), {}))
    value = site.place.env.get(node.id)
    source = built.get(node.id)
    return source if value is not None and value.built_from == source else None
