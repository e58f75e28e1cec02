"""expert-loop (GM502): a mixture-of-experts loop that routes rows to experts (data-dependent shapes).

`for i in range(n): slot, row = torch.where(mask[i]); y.index_add_(0, row, expert(x[row]) * w[row, slot, None])` has
shapes that depend on the routing, so every round breaks the graph. The loop, from the first value whose size the
routing decides, moves word for word into a function. Eager mode calls it; torch.compile calls it as one operator
(made with `torch.library`), so there is one graph with an opaque operator in it, whatever experts do to their rows.

The operator runs the loop as eager mode does: same numbers, one wait for the device each time, nothing fused. Its
gradient takes what autograd kept of the run, as in eager mode; a second one of the same call runs the loop again, with
the random numbers and the buffers that the first run had.
Measured on seven expert blocks of transformers with Inductor on one thread (`docs/cost.md`): 0.9 to 1.0 times the time
at 512 rows, 0.9 to 1.1 times at one. With backward 1.1 to 1.5 times when a gradient still ran the loop twice, and 1.05
times since then for a loop over 8 experts (256 rows), the one case measured again. Start-up takes 0.5 to 1.0 times as
long; at one row up to 1.8 times, where a break in a loop kept Dynamo from compiling the router, too. A loop that goes
through the chosen experts alone (Switch Transformers) does so little with one row that the operator's call shows: 1.3
times by itself, 1.0 with a feed-forward layer behind it; 1.0 at 512 rows, as for NLLB-MoE.

Experts without rows get a gradient of zeros where eager mode leaves them without one. The operator knows its module by
a number that torch.compile guards, so compile a model as a whole: layers that are compiled one by one are compiled once
each, up to `torch._dynamo.config.recompile_limit`. Without gradients the operator finds the experts' parameters itself,
so that no call guards or passes them; `torch.func.functional_call` inside of compiled code is noticed then if it
replaces the first or the last of them. With gradients, a layer of an expert that is replaced after compiling by one of
the same class with more or fewer parameters needs `torch.compiler.reset()`.

The loop has to change one tensor that nothing else refers to, and nothing else; experts are of classes in the same file
whose methods write no attributes. They may be looked up in an `nn.ModuleList` or an `nn.ModuleDict` (`.values()`,
`getattr(self.experts, f"expert_{i}")`), or in the instance, where its class extends one (`self[f"expert_{i}"]`). Where
the constructor gets their class as an argument, the operator is for its default. Methods of the instance that the loop
calls (`self.apply_gate(h)`) are followed: they may compute and run layers, and the operator is for this class alone,
not for one that has such a method of its own. A function outside of classes may hold the loop, too.

What the operator cannot take is asked for while tracing, and then the loop breaks the graph as before: subclasses of
tensors (DTensor), numbers that are no integers, experts that another file put in, with backward hooks or, where
gradients are on, with any hook or a `forward` of their own, `torch.export`. Autocast holds inside the operator as it
does around it.

Running every expert on all rows, masked, would need no operator, and multiply the work of the experts: never a fix.
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import all_names, elements_of, is_literal, is_name, is_within, names_bound
from graphmend_codemod.analysis.scope import of_kind, walk, walk_in_layers
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import AS_OPERATOR
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.statements import region_outlining
from graphmend_codemod.rules.proofs.rowwise.selectors import where_of

_ABOUT = "Add to `{}` what each expert makes of its own rows."

rule = Rule(
    __name__,
    __doc__,
    title="run experts as one custom operator under torch.compile",
    contract=Contract(
        cost=Cost.OUTLINED,
        cost_note="experts run as in eager mode",
        compiled_state="kept; torch.compile notes a number for each module among the globals of the file",
    ),
)


@rule.on(ast.For)
def expert_loop(site: Site, node: ast.For) -> Diagnostic | None:
    """`for i, expert in enumerate(self.experts): ... expert(x[rows]) ...`, or `... expert(x[start:end]) ...`."""
    chooses = chooses_rows(site, node)
    statements = [*statements_before(site, node), node] if chooses else segment_statements(site, node)
    if statements is None:
        return None
    message = f"loop over selected rows (data-dependent shapes): `{speculation.short(node.iter)}`"
    return judged(message, lambda: region_outlining.edit(site, statements, _ABOUT), AS_OPERATOR)


# Loops over the experts of a mixture of experts (GM502): what a round looks like, and which statements belong to it

_ADDS = frozenset({"index_add_", "index_add"})
_READS = frozenset({"nonzero", "tolist", "unique", "argwhere"})
_READS_SIZES = frozenset({"numpy", "tolist", "split"})


def chooses_rows(site: Site, node: ast.For) -> bool:
    """True when a round takes rows by a mask, hands them on, and writes rows."""
    if not _may_write_rows(site, node):
        return False
    parts = list(walk(node))
    if not any(map(_writes_rows, parts)):
        return False
    names = variables_of(node)
    local = names | names_bound(node)
    chooses = calls = False
    for part in parts:
        if isinstance(part, ast.Call):
            chooses = chooses or where_of(site, part) is not None
            calls = calls or _may_be_expert(part.func, local) or any(_of_expert(each, names) for each in part.args)
        elif isinstance(part, ast.Subscript):
            elements = elements_of(part.slice)
            chooses = chooses or any(is_mask_of_round(site, element, names) for element in elements)
        elif isinstance(part, ast.Assign):
            chooses = chooses or is_mask_of_round(site, part.value, names)
    return chooses and calls


def _may_write_rows(site: Site, node: ast.For) -> bool:
    """What the outline of the function tells of that; it does not tell what stands in functions inside."""
    inside = site.evaluator.scope.outline
    if inside.nested or not inside.words.keys().isdisjoint(_ADDS):
        return True
    stores = (part.lineno for part in inside.subscripts if isinstance(part.ctx, ast.Store))
    return any(node.lineno <= line <= (node.end_lineno or line) for line in stores)


def variables_of(node: ast.For) -> frozenset[str]:
    """The names that a round gets from the loop's header."""
    return frozenset(part.id for part in walk_in_layers(node.target) if isinstance(part, ast.Name))


def is_mask_of_round(site: Site, node: ast.expr, names: frozenset[str]) -> bool:
    """True for a mask of the rows of one round: `m[:, i]` of a bool tensor, or `chosen == i`."""
    cast = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "bool"
    if cast and isinstance(node.func.value, ast.Subscript):  # type: ignore[attr-defined]
        return _of_round(node.func.value, names)  # type: ignore[attr-defined]
    if not isinstance(node, (ast.Subscript, ast.Compare)) or not _of_round(node, names):
        return False
    if isinstance(node, ast.Compare):
        plain = len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)
        index = node.comparators[0]
        return plain and isinstance(index, ast.Name) and index.id in names and not site.value(node.left).is_python
    return site.value(node).dtype == BOOL or _cast_to_bool(site, node.value)


def _of_round(node: ast.expr, names: frozenset[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in walk_in_layers(node))


def _cast_to_bool(site: Site, node: ast.expr) -> bool:
    """True for a name that was last assigned a `.bool()`."""
    if not isinstance(node, ast.Name):
        return False
    last = next((each for each in site.place.above() if node.id in names_bound(each)), None)
    call = last.value if isinstance(last, ast.Assign) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "bool"


def _writes_rows(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Attribute) and node.attr in _ADDS


def _of_expert(node: ast.expr, names: frozenset[str]) -> bool:
    """True for `self.weight[i]` with the number of this round."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and _of_round(node.slice, names)


def _may_be_expert(function: ast.expr, names: frozenset[str] | set[str]) -> bool:
    """True for `expert(...)` with a name of this loop, `self.experts[i](...)`, `self.mlp(...)`, `getattr(...)(...)`."""
    if isinstance(function, ast.Name):
        return function.id in names
    if isinstance(function, ast.Attribute):
        return is_name(function.value, "self")
    return isinstance(function, (ast.Subscript, ast.Call))


def statements_before(site: Site, node: ast.For) -> list[ast.stmt]:
    """The statements from the one that computes what the loop runs over, where that depends on the routing."""
    if not isinstance(node.iter, ast.Name):
        return []
    body, position = site.place.blocks[-1]
    for start in range(position - 1, -1, -1):
        if node.iter.id in names_bound(body[start]):
            return list(body[start:position]) if _data_dependent(site, body[start]) else []
    return []


def _data_dependent(site: Site, node: ast.AST) -> bool:
    """True when something in `node` has as many elements as a condition holds for, or reads a tensor's values."""
    return any(
        getattr(part.func, "attr", "") in _READS or where_of(site, part) is not None
        for part in of_kind(walk(node), ast.Call)
    )


def segment_statements(site: Site, node: ast.For) -> list[ast.stmt] | None:
    """The statements of a loop over segments of rows, with those that it needs around it; None for other loops."""
    if site.evaluator.scope.outline.words.keys().isdisjoint(_READS_SIZES) and not _slices(node):
        return None
    names = all_names(node)
    body, position = site.place.blocks[-1]
    first, read, pieces = position, set[str](), False
    for start in range(position - 1, -1, -1):
        statement = body[start]
        target = _target(statement)
        if target is None or not isinstance(statement, ast.Assign):
            if first == position and not isinstance(statement, ast.Assign):
                break
            continue
        if target in names and target not in read and _read_back(statement.value):
            read.add(target)
            first = start
        elif target in names and (split := _split(statement.value)) is not None and _is_size_list(site, split[1]):
            pieces, first = True, start
    if not (pieces or read or _tensor_bounds(site, node)) or not (pieces or _slices(node)):
        return None
    return [*body[first:position], node, *_joined(list(body[:position]), list(body[position + 1 :]), node)]


def _joined(before: list[ast.stmt], after: list[ast.stmt], node: ast.For) -> list[ast.stmt]:
    """`y = torch.cat(pieces)` behind a loop that appends to `pieces`."""
    appended = {
        part.func.value.id
        for part in of_kind(walk_in_layers(node), ast.Call)
        if isinstance(part.func, ast.Attribute) and part.func.attr == "append" and isinstance(part.func.value, ast.Name)
    }
    lists = {_target(each) for each in before if isinstance(each, ast.Assign) and _is_empty_list(each.value)}
    read = all_names(after[0]) if after else set()
    return after[:1] if after and _target(after[0]) is not None and appended & lists & read else []


def _is_empty_list(node: ast.expr) -> bool:
    return isinstance(node, ast.List) and not node.elts


def _target(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def _read_back(node: ast.expr) -> bool:
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in {"numpy", "tolist"}
        for part in walk_in_layers(node)
    )


def _split(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """`x` and `sizes` of `x.split(sizes, dim=0)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "split":
        return None
    dims = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "dim")]
    along_rows = all(is_literal(dim, 0) for dim in dims)
    return (node.func.value, node.args[0]) if node.args and along_rows else None


def _is_size_list(site: Site, sizes: ast.expr) -> bool:
    """True when a function of this file hands on sizes of this name that it read from a tensor."""
    if not isinstance(sizes, ast.Name) or site.value(sizes).is_tensor:
        return False
    tree = tree_of(site.source.text)
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            _target(part) == sizes.id and _read_back(part.value) for part in of_kind(walk(function), ast.Assign)
        ):
            return True
    return False


def _slices(node: ast.For) -> list[ast.Subscript]:
    """Subscripts by a slice whose bounds the loop computes."""
    between = [
        (part, {part.slice.lower.id, part.slice.upper.id})
        for part in of_kind(walk_in_layers(node), ast.Subscript)
        if isinstance(part.slice, ast.Slice)
        and part.slice.step is None
        and isinstance(part.slice.lower, ast.Name)
        and isinstance(part.slice.upper, ast.Name)
    ]
    bound = names_bound(node) | variables_of(node) if between else set()
    return [part for part, names in between if names <= bound]


def _tensor_bounds(site: Site, node: ast.For) -> bool:
    """True when both bounds of a slice are known to be tensors."""
    for part in _slices(node):
        assert isinstance(part.slice, ast.Slice)
        for statement in node.body:
            inner = site.at(statement)
            if inner is None or not is_within(part, statement):
                continue
            bounds = (part.slice.lower, part.slice.upper)
            return all(bound is not None and inner.value(bound).is_tensor for bound in bounds)
    return False
