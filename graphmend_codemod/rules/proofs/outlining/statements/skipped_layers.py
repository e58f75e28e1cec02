"""A layer that a random number skips (LayerDrop), as one operator that runs it or does not.

The operator gets the number, and does what eager mode does: it compares, and runs the layer or gives back what it was
given. `torch.cond` would look inside, and draw the numbers for dropout anew for the gradient (torch 2.13).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from graphmend_codemod.analysis.patterns import all_names, is_attribute, is_name, names_bound
from graphmend_codemod.analysis.scope import of_kind, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of
from graphmend_codemod.rules.proofs.conditions.random_draws import is_drawn_in_graph
from graphmend_codemod.rules.proofs.outlining.custom_op import (
    OF_A_CLASS,
    OWN_GRADIENT,
    def_line,
    definition_before,
    demand_movable,
    moved,
    nested,
    one_operator,
    operator_name,
)
from graphmend_codemod.rules.proofs.outlining.effects.region_layers import flags_of_layers
from graphmend_codemod.rules.proofs.select import layer_draws, skipped_layer
from graphmend_codemod.rules.proofs.select.layer_draws import Draw
from graphmend_codemod.rules.proofs.select.skipped_layer import Ways

_COMMENT = "# One operator runs the layer or skips it, as the number says: torch.compile does not look inside."
_FORMS = (ast.Lambda, ast.FunctionDef, ast.ClassDef, ast.Try, ast.Import, ast.ImportFrom, ast.Delete, ast.NamedExpr)
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)


def edit(site: Site, loop: ast.For, drawn: Draw) -> Edit:
    """The compile path in front of the statements that the number decides about. NotProven where that would show."""
    demand_torch(site)
    array = is_drawn_in_graph(site, drawn.draw)
    if not array and not layer_draws.is_of_torch(site, drawn):
        raise NotProven("the number is drawn outside of torch")
    found = skipped_layer.ways(site, loop, drawn)
    statements = [each.statement for each in (*found.first, *found.run)]
    demand_movable([part for each in statements for part in walk(each)], _LEAVES, _FORMS, OF_A_CLASS)
    layer = _layer(site, loop, statements)
    flags = flags_of_layers(site, _container(site, loop, layer))
    here = site.reached(found.statements[0], "the code")
    given, words = _given(here, found, statements, layer)
    bound = here.free_name("bound")
    handed = [f"torch.as_tensor({each})" if array and is_name(drawn.draw, each) else each for each in given]
    operator = operator_name(here, layer)
    asked = [
        "torch.compiler.is_dynamo_compiling()",
        *found.asked,
        *skipped_layer.tensors_asked(here, found),
        *(f"not {each}" for each in words),
        *(f"{layer}.{flag} is False" for flag in flags),
        f"not torch.is_autocast_enabled({found.kept[0]}.device.type)",
        here.call("_fits_an_operator(", ["__name__", layer, '("",)', *handed], deeper=1),
    ]
    call = here.call(f"{', '.join(found.kept)} = {operator}(", [layer, *handed, here.text(drawn.number)], deeper=1)
    path = skipped_layer.path_beside(here, found, asked, [_COMMENT, call])
    made, takes = here.free_name(f"{operator}_shapes"), [layer, *given, bound]
    helpers = (
        *one_operator(site),
        OWN_GRADIENT,
        Helper(made, _shapes(made, found, takes, here.line_limit), after=("_one_operator",)),
        Helper(
            operator,
            _operator(here, found, operator, made, takes, words),
            after=(*definition_before(site), "_one_operator", OWN_GRADIENT.name, made),
        ),
    )
    return path._replace(imports=("torch",), helpers=helpers)


def _layer(site: Site, loop: ast.For, statements: Sequence[ast.stmt]) -> str:
    """The name of the round's layer, which is called once. NotProven for anything else that the round does with it."""
    names = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    called = [
        part.func.id
        for each in statements
        for part in of_kind(walk(each), ast.Call)
        if isinstance(part.func, ast.Name) and part.func.id in names
    ]
    if len(called) != 1:
        raise NotProven("a round does not call one layer of the loop once")
    reads = [part for each in statements for part in walk(each) if is_name(part, called[0])]
    if len(reads) != 1:
        raise NotProven(f"`{called[0]}` is used for more than the call")
    return called[0]


def _container(site: Site, loop: ast.For, layer: str) -> str:
    """The attribute of the instance that the loop goes through."""
    target, iterated = loop.target, loop.iter
    counted = isinstance(iterated, ast.Call) and site.resolve(iterated.func) == "builtins.enumerate"
    if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2 and is_name(target.elts[1], layer):
        target, iterated = target.elts[1], iterated.args[0]  # type: ignore[attr-defined]
    if isinstance(iterated, ast.Subscript) and isinstance(iterated.slice, ast.Slice):
        iterated = iterated.value
    own = site.evaluator.scope.self_name
    if own is None or not is_name(target, layer) or not isinstance(iterated, ast.Attribute):
        raise NotProven(f"cannot infer what `{short(loop.iter)}` contains")
    if not is_attribute(iterated, own, iterated.attr):
        raise NotProven(f"`{short(iterated)}` is not held by the instance itself")
    return iterated.attr


def _given(site: Site, found: Ways, statements: Sequence[ast.stmt], layer: str) -> tuple[list[str], list[str]]:
    """The locals that the operator reads, first what the layer may leave alone, and `**words`, which have to be none.

    NotProven where it reads more.
    """
    scope = site.evaluator.scope
    names = dict.fromkeys(found.kept)
    bound = {target for each in found.first for target in names_bound(each.statement)}
    compared = [found.drawn.draw]
    nodes = (part for each in (*statements, *compared) for part in (each, *walk_scope(each)))
    parts = [part for part in nodes if isinstance(part, ast.Name)]
    for part in sorted(parts, key=lambda each: (each.lineno, each.col_offset)):
        if not isinstance(part.ctx, ast.Load) or part.id == layer:
            continue
        if part.id == scope.self_name:
            raise NotProven(f"what the layer is given is read of `{part.id}`")
        if scope.is_local(part.id) and part.id not in bound:
            names[part.id] = None
    inside = skipped_layer.bound_before_read([each.statement for each in found.run])
    read = [name for name in names if name in found.kept or name not in inside]
    more = scope.node.args.kwarg.arg if scope.node.args.kwarg is not None else ""
    unpacked = [part for part in parts if part.id == more]
    handed = [
        word.value
        for each in statements
        for call in of_kind(walk(each), ast.Call)
        for word in call.keywords
        if word.arg is None
    ]
    if any(all(part is not each for each in handed) for part in unpacked):
        raise NotProven(f"`{more}` is used for more than `**{more}`")
    return [name for name in read if name != more], [more] if unpacked else []


def _shapes(name: str, found: Ways, takes: list[str], limit: int) -> str:
    empty = ", ".join(f"{each}.new_empty({each}.shape)" for each in found.kept)
    about = '    """Empty tensors like the results of the operator."""'
    return "\n".join([def_line(name, takes, limit), about, f"    return [{empty}]"])


def _operator(site: Site, found: Ways, name: str, shapes: str, takes: list[str], words: list[str]) -> str:
    results = ", ".join(found.kept)
    compared = layer_draws.compared_text(site, found.drawn, takes[-1])
    used = {*takes, *(each for part in (*found.first, *found.run) for each in all_names(part.statement))}
    before, new, old = (_unused(each, used) for each in ("before", "new", "old"))
    several = tuple_of(found.kept)
    return "\n".join(
        [
            f'@_one_operator("", shapes={shapes}{nested(len(found.kept))})',
            f"@{OWN_GRADIENT.name}",
            def_line(name, takes, site.line_limit),
            f'    """Run `{takes[0]}` or skip it, as the number says: one operator for torch.compile."""',
            *(f"    {each} = {{}}" for each in words),
            f"    {before} = {several}",
            *(moved(site, [each.statement]) for each in found.first),
            f"    if {compared if found.outcome else f'not {compared}'}:",
            f"        return {results}",
            *(moved(site, [each.statement]) for each in found.run),
            f"    for {new}, {old} in zip({several}, {before}):",
            f"        if {new}.shape != {old}.shape or {new}.dtype != {old}.dtype:",
            '            raise RuntimeError("a layer that may be skipped has to keep shape and dtype when compiled")',
            f"    return {results}",
        ]
    )


def _unused(name: str, used: set[str]) -> str:
    return name if name not in used else _unused(f"{name}_", used)
