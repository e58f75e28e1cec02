"""rows-under-mask (GM510): a computation on the rows that a mask chooses, written back under it or reduced.

`y[mask] = f(x[mask])` and `y[mask] += x[mask] * 2` make tensors of as many rows as the data says, and the graph breaks.
Under `torch.compile` all rows are computed, and the mask selects which are written. In the place of a row that the mask
does not choose stands one that it does: so no nan comes up that eager mode does not have, forward or backward, and what
the function checks of all rows (`if x.min() < 0: raise`) says what it says of the chosen ones. Eager mode runs the
original statements, word for word.

Where a statement only adds (`y[mask] = 1 - x[mask]`) or takes a written factor (`x[mask] *= 2`), nothing has to stand
in: `x.copy_(torch.where(mask, x * 2, x))`.

Sums, means and losses of such rows are those of all rows under the mask: `F.mse_loss(x[mask], y[mask])`, and
`F.cross_entropy(logits[mask], labels[mask])`, where what the mask leaves out has the label that the loss ignores. Sums
add up in another order. Losses of float16 other than `cross_entropy` are left alone, since eager mode scales their
gradients before it multiplies.

Layers such as `nn.CrossEntropyLoss` and `nn.L1Loss` count as well; the compile path asks for the class and reduction
of one that the constructor made. Where `logits[mask]` and `labels[mask]` reach a loss of classes far behind, outside of
the branch that selects them, the loss is not changed: the compile path keeps all rows, and gives the labels that the
mask does not choose the number that the loss ignores.

One row for all that the mask chooses, `x[mask] = row.expand_as(x[mask])` or `table[i].expand_as(x[mask])`, is expanded
to all rows; the compile path asks for its shape. So does it for one row that is added to all, `x[mask] += self.weight`.

The mask may be a comparison, `x[x > 0]`, or `mask.view(-1)`. It may select from parts of a tensor, `x[..., 1:][mask]`,
and from elementwise work on tensors of one shape, `F.softplus(a + b)[mask]` or `(a * b).masked_select(mask)`.

An element of each row counts as well, read and written: `y[mask] = x[mask, labels[mask]]`, `x[mask, labels[mask]] = 1`,
`x[mask, 4] -= 1`. The compile path asks that `x` has one dimension more than the mask, and that the index is int64.

A test whether the mask chooses a row, `if mask.any():` around such work, is left out of the compile path: without a row
nothing is written. But eager mode skips the work then, and the compile path does it for rows of zeros. So the branch
may do nothing else than write under the mask and keep variables for itself, and the functions that it calls may have no
effects. The compile path asks that what they check, `if x.min() < low: raise`, holds for zeros (`0 >= low`), as does
what they check of sizes and numbers; where nobody can tell, the fix is declined, or for the way without the check. What
was computed of layers that only this work uses gets a gradient of zeros where no row is chosen; eager mode leaves their
parameters without one, as with an expert that gets no rows.

The compile path asks that the mask lies on the device of the tensor, unless it compares that tensor: eager mode takes a
mask on the CPU for a tensor on a GPU.

Functions of the project are followed, also in other files. They may look at each element alone, or along the dimensions
of a row: what mixes rows, multiplies matrices, or runs layers is a reason to decline, as is a check that may fail where
no row is chosen. Where they look up what they computed (`gather`), the compile path asks whether the mask would choose
a row of zeros, which the function then has to take; where they divide by rows (`//`, `%`), whether these are of
floating dtype, for integers cannot be divided by the zeros that stand in. Numbers have to be numbers, shapes have to
fit the mask, which Dynamo knows while it traces.

Where eager mode raises since no row is chosen (the minimum of nothing), or since what is written has another dtype than
what it is written into, compiled code may go on.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator

from graphmend_codemod.analysis.outline import INDEXED
from graphmend_codemod.analysis.patterns import same
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import judged
from graphmend_codemod.rules.framework.reasons import NotProven, with_way_out
from graphmend_codemod.rules.framework.rule import WRITES_ANYWAY, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.rowwise.row_values import NotRowwise
from graphmend_codemod.rules.proofs.rowwise.selectors import (
    chosen_by,
    element,
    is_expression,
    is_plain,
    is_view_of_name,
    selection,
)
from graphmend_codemod.rules.proofs.untraced.subscripts import chosen, chosen_anywhere

_BY_HAND = "manually compute all rows and select with `torch.where`"

rule = Rule(
    __name__,
    __doc__,
    title="compute all rows and select with the mask under torch.compile",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="elementwise work on all rows, also where the mask chooses none",
        compiled_exceptions="kept, but where eager mode raises for want of rows, or for the dtype that is written; "
        + WRITES_ANYWAY,
        saves_masks=True,
    ),
)


def _reads(node: ast.AST) -> Iterator[ast.expr]:
    for part in walk_in_layers(node):
        if isinstance(part, (ast.Subscript, ast.Call)) and chosen_by(part) is not None:
            yield part


def _index_of(node: ast.Assign) -> ast.expr | None:
    """`labels[mask]` of `x[mask, labels[mask]] = 1`."""
    found = element(node.targets[0])
    read = (part for part in _reads(found.place) if same(chosen_by(part) or part, found.mask)) if found else iter(())
    return next(read, None)


def _is_plain_if(node: ast.If) -> bool:
    return not node.orelse and next(_work_in(node), None) is not None


def _work_in(node: ast.If) -> Iterator[ast.stmt]:
    """Statements of the branch that compute with rows of a mask."""
    for part in walk(node):
        works = isinstance(part, (ast.Assign, ast.AugAssign)) and _is_worth_asking(part)
        if works and isinstance(part, ast.stmt) and not _only_copies(part):
            yield part


def _is_worth_asking(node: ast.stmt) -> bool:
    if isinstance(node, ast.AugAssign) and chosen_by(node.target) is not None:
        return True
    if isinstance(node, ast.Assign) and any(map(element, node.targets)) and _index_of(node) is not None:
        return True
    value = node.value if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return)) else None
    return value is not None and next(_reads(value), None) is not None


@rule.on(ast.Assign, ast.AugAssign, ast.Return, words={INDEXED, "masked_select"}, here=True, when=_is_worth_asking)
def rows_under_mask(site: Site, node: ast.Assign | ast.AugAssign | ast.Return) -> Diagnostic | None:
    """`y[mask] = f(x[mask])`, `return (x[mask] - y[mask]).abs().mean()`."""
    assert node.value is not None
    inside = [*([node.target] if isinstance(node, ast.AugAssign) else []), *_reads(node.value)]
    inside += filter(None, [_index_of(node)] if isinstance(node, ast.Assign) else [])
    found = next((each for each in inside if _is_chosen(site, each)), None)
    if found is None or (mask := chosen_by(found)) is None or _only_copies(node):
        return None
    body, position = site.place.blocks[-1]
    parts = [part for each in body[position:] for part in walk(each)]
    behind = (part for block, at in site.place.blocks[:-1] for each in block[at + 1 :] for part in walk(each))
    written = any(_writes(part, mask) or _reduces(site, part) for part in parts)
    if _is_plain_reduction(node) or not (written or any(_reduces(site, part) for part in behind)):
        return None
    if _has_known_size(site, node, found) or _test_is_left_out(site, node):
        return None
    message = f"computes with rows from boolean-mask indexing (data-dependent shape): `{short(found)}`"
    from graphmend_codemod.rules.proofs.rowwise.masked_region import NotWritten, region_at  # a commit hook waits for it

    before = [each for each in body[:position] if _is_worth_asking(each) and not _only_copies(each)]
    if any(node in _region(site, each, mask) for each in before):
        return None
    try:
        region = region_at(site, body[position:], mask)
    except NotWritten:
        return None
    except NotRowwise as why:
        return None if is_expression(mask) else Diagnostic(message, declined=with_way_out(str(why), _BY_HAND))
    return Diagnostic(message, edit=region.edit)


@rule.on(ast.If, candidate="test", words={INDEXED, "masked_select"}, when=_is_plain_if)
def test_around_rows(site: Site, node: ast.If) -> Diagnostic | None:
    """`if mask.any(): y[mask] = f(x[mask])`."""
    asked = _asked_around(site, node)
    if asked is None:
        return None
    return _left_out_test(node, lambda: _without_test(site, node, *asked))


def _left_out_test(node: ast.If, write: Callable[[], Edit]) -> Diagnostic:
    return judged(f"data-dependent branch around work on the rows of a mask: `{short(node.test)}`", write, _BY_HAND)


def _asked_around(site: Site, node: ast.If) -> tuple[ast.expr, tuple[ast.expr, ...]] | None:
    """The mask of which a test asks whether it chooses a row, and what is asked in front of that.

    None where the branch computes with no rows of that mask.
    """
    from graphmend_codemod.rules.proofs.conditions.condition import split
    from graphmend_codemod.rules.proofs.masks.masked_writes import asked_mask

    condition = split(site, node.test)
    if condition is None or len(condition.tensors) != 1:
        return None
    mask = asked_mask(site, condition.tensors[0])
    if mask is None or condition.again is not None:
        return None
    found = (chosen_by(part) for each in _work_in(node) for part in walk(each))
    # As the branch spells it: `~m` is asked for by `not m.all()`.
    spelled = next((each for each in found if each is not None and same(each, mask)), None)
    return None if spelled is None else (spelled, condition.static)


def _without_test(site: Site, node: ast.If, mask: ast.expr, static: tuple[ast.expr, ...]) -> Edit:
    from graphmend_codemod.rules.proofs.rowwise.skipped_rows import without_test

    return site.remembered("without test", node, lambda: without_test(site, node, mask, static))


def _has_known_size(site: Site, node: ast.stmt, read: ast.expr) -> bool:
    """True where the source tells how many rows the mask chooses (GM411)."""
    if isinstance(node, ast.AugAssign) and read is node.target:
        return False  # it writes rows, in a place of their own
    if not isinstance(read, ast.Call) and "eye" not in site.evaluator.scope.outline.words:
        return False
    from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import (
        of_known_size,  # a commit hook waits for it
    )

    try:
        return of_known_size(site, node, read) is not None
    except NotProven:
        return False


def _test_is_left_out(site: Site, node: ast.stmt) -> bool:
    """True where the test around the statement is left out, and all that it is around is written anew with it."""
    around = [body[position] for body, position in site.place.blocks[:-1]][-1:]
    there = site.at(around[0]) if around else None
    if there is None or not isinstance(around[0], ast.If) or node not in around[0].body:
        return False
    asked = _asked_around(there, around[0]) if _is_plain_if(around[0]) else None
    if asked is None:
        return False
    with contextlib.suppress(NotRowwise):
        return _without_test(there, around[0], *asked) is not None
    return False


def _writes(node: ast.AST, mask: ast.expr) -> bool:
    """True for `y[mask]` that is assigned to."""
    written = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    found = chosen_by(node) if written else None
    return found is not None and same(found, mask)


def _is_chosen(site: Site, node: ast.expr) -> bool:
    """True for `x[mask]`; the compile path asks whether it is a mask."""
    if not isinstance(node, ast.Subscript):
        return isinstance(node, ast.Call)
    return chosen(site, node) is not None or chosen_anywhere(site, node) is not None


def _reduces(site: Site, node: ast.AST) -> bool:
    """True for `x.mean()`, `F.mse_loss(x, y)`, and for `self.loss(x, y)` of a layer that is a loss."""
    from graphmend_codemod.rules.proofs.rowwise.masked_losses import is_loss

    return isinstance(node, ast.Call) and is_loss(site, node)


def _is_plain_reduction(node: ast.stmt) -> bool:
    """True where all rows are those of `x[mask].sum()`, which needs no proof."""
    plain = {
        id(part.func.value)
        for part in walk_in_layers(node)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in {"sum", "mean"}
        if (found := selection(part.func.value)) is not None and is_plain(found, part.func.attr)
    }
    read = [each for each in _reads(node) if not isinstance(getattr(each, "ctx", None), ast.Store)]
    return bool(read) and all(id(each) in plain for each in read)


def _region(site: Site, first: ast.stmt, mask: ast.expr) -> tuple[ast.stmt, ...]:
    """The statements that are written anew with an earlier one."""
    from graphmend_codemod.rules.proofs.rowwise.masked_region import region_at

    there = site.at(first)
    if there is None:
        return ()
    body, position = there.place.blocks[-1]
    with contextlib.suppress(NotRowwise):
        return region_at(there, body[position:], mask).statements
    return ()


def _only_copies(node: ast.stmt) -> bool:
    """True for `y[mask] = x[mask]` and `y[mask.view(n, -1)] = x[mask.view(n, -1)]`, which need no proof (GM509)."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript):
        return False
    if not isinstance(target, ast.Subscript) or element(node.value) is not None or element(target) is not None:
        return False
    if not is_expression(target.slice):
        return isinstance(node.value.value, ast.Name) or not same(target.slice, node.value.slice)
    named = isinstance(target.value, ast.Name) and isinstance(node.value.value, ast.Name)
    return named and is_view_of_name(target.slice) and same(target.slice, node.value.slice)
