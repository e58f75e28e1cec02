"""list-of-tests (GM511): indexing by a list of bools (data-dependent shape).

`x[..., [kind == "circular" for kind in kinds], 0]` reads where the list has True. Dynamo makes a mask of the list,
whose elements it does not know any more, and the graph breaks. Under `torch.compile` the numbers of these places index
instead, which are Python integers. Eager mode runs the original statement, word for word.

The path is taken for a list of bools as long as the dimension that it indexes, which Dynamo knows while it traces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.outline import INDEXED
from graphmend_codemod.analysis.patterns import same
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import is_list_of_tests

rule = Rule(
    __name__,
    __doc__,
    title="index with integers instead of a list of bools under torch.compile",
    contract=Contract(cost=Cost.NONE),
)


def _indexed(node: ast.stmt) -> Iterator[tuple[ast.Subscript, list[ast.expr]]]:
    for part in walk_in_layers(node):
        if isinstance(part, ast.Subscript):
            yield part, list(part.slice.elts) if isinstance(part.slice, ast.Tuple) else [part.slice]


def _may_read(node: ast.Assign | ast.Return) -> bool:
    return any(
        isinstance(each, ast.Name) and isinstance(part.ctx, ast.Load)
        for part, index in _indexed(node)
        for each in index
    )


@rule.on(ast.Assign, ast.Return, words={INDEXED}, here=True, when=_may_read)
def list_of_tests(site: Site, node: ast.Assign | ast.Return) -> Diagnostic | None:
    """`x[..., flags, 0]` where `flags = [kind == "b" for kind in kinds]`."""
    found = [
        (part, index, position)
        for part, index in _indexed(node)
        for position, each in enumerate(index)
        if is_list_of_tests(site, each) and not site.value(part.value).is_python
    ]
    if not any(isinstance(part.ctx, ast.Load) for part, _, _ in found):
        return None
    name = found[0][1][found[0][2]]
    message = f"boolean-mask indexing by a list of bools (data-dependent shape): `{short(found[0][0])}`"
    flags, facts, places = site.text(name), [], site.free_name("places")
    written: dict[int, tuple[ast.expr, str]] = {}
    for part, index, position in found:
        if dotted(part.value) is None:
            text = short(part.value)
            return Diagnostic(message, declined=f"`{text}` would be computed twice; assign it to a variable first")
        dimension = _dimension(index, position)
        if dimension is None or not same(index[position], name):
            return Diagnostic(message, declined=f"cannot infer which dimension `{site.text(index[position])}` indexes")
        indexed = site.value(part.value)
        if not indexed.is_tensor or indexed.hint:
            facts.append(f"isinstance({site.text(part.value)}, {site.torch}.Tensor)")
        facts.append(f"len({flags}) == {site.text(part.value)}.shape[{dimension}]")
        written[id(index[position])] = (index[position], places)
    bools = [f"isinstance({flags}, list)", f"all(isinstance(each, bool) for each in {flags})"]
    chosen = f"{places} = [place for place, each in enumerate({flags}) if each]"
    lines = [chosen, site.but(written=written).text(node)]
    return Diagnostic(message, edit=two_paths(site, node, [site.compiling, *bools, *facts], lines))


def _dimension(index: list[ast.expr], position: int) -> int | None:
    """The number of the dimension that a part of an index is for; None where that depends on more than the index."""
    plain = all(isinstance(each, (ast.Name, ast.Slice, ast.UnaryOp)) or _is_whole(each) for each in index)
    wide = [number for number, each in enumerate(index) if isinstance(each, ast.Constant) and each.value is Ellipsis]
    if not plain or len(wide) > 1 or sum(isinstance(each, ast.Name) for each in index) > 1:
        return None
    return position - len(index) if wide and wide[0] < position else position


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is Ellipsis or type(node.value) is int)
