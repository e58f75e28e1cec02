"""Numbers and sizes that only the data tells, in a form that Dynamo keeps in the graph as symbols."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import item_of
from graphmend_codemod.analysis.scope import dotted, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.core.findings import Helper, Original, Span
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.custom_op import NAMING, decorator
from graphmend_codemod.rules.proofs.outlining.symbols.chosen_in_graph import indexed, search_in_graph
from graphmend_codemod.rules.proofs.outlining.symbols.cut_by_numbers import unanswered_cut
from graphmend_codemod.rules.proofs.outlining.symbols.deciders import avoided
from graphmend_codemod.rules.proofs.outlining.symbols.fractions_read import has_fraction, whole_at_trace
from graphmend_codemod.rules.proofs.outlining.symbols.kept_boxes import kept
from graphmend_codemod.rules.proofs.outlining.symbols.kept_statistics import only_kept
from graphmend_codemod.rules.proofs.outlining.symbols.laid_out_anew import widths_kept
from graphmend_codemod.rules.proofs.outlining.symbols.numbers_not_taken import why_not_taken
from graphmend_codemod.rules.proofs.outlining.symbols.unknown_counts import as_shape, rows_of, sizes_in, unanswered
from graphmend_codemod.rules.proofs.outlining.symbols.values_asked import (
    why_truth_is_asked,
    why_value_is_asked,
)
from graphmend_codemod.rules.proofs.outlining.texts.numbers import (
    HELPERS,
    SCHEMAS,
    TEXTS,
    needed,
)
from graphmend_codemod.rules.proofs.untraced import places as untraced
from graphmend_codemod.rules.proofs.untraced.arrays import is_array
from graphmend_codemod.rules.proofs.untraced.calls import sizes
from graphmend_codemod.rules.proofs.untraced.evidence import is_number, is_of_numpy
from graphmend_codemod.rules.proofs.untraced.guessed_breaks import is_count
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.numbers_listed import made_of_list
from graphmend_codemod.rules.proofs.untraced.subscripts import bounds

_CHOOSES = re.compile("_(places|nonzero|masked_select|repeated|repeats|unique|unique_consecutive|bincount)_")
_READS = {"item": "_number_in_graph", "tolist": "_numbers_in_graph"}
_CASTS = frozenset({"builtins.int"})
_SINCE = {
    "_nonzero_fake": "_library.fake_impl.allocate_size",
    "_repeats_fake": "_library.fake_impl.allocate_size",
    "_unique_fake": "_library.fake_impl.allocate_size",
    "_bincount_fake": "_library.fake_impl.allocate_size",
    "_fraction_fake": "utils._sympy.functions.FloatPow",
}
_MADE = "new_tensor"
_COUNTED = ("_unique_", "_bincount_")
_WHOLE = ("torch.int", "torch.uint", BOOL, "bool:")
_ONCE = (ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)


_PASS_IN = "manually pass it in as a number of Python, compute it from shapes, or keep it a tensor"


class Captured(NamedTuple):
    """What a statement reads from the data: the first such place, and what is `written` in the place of nodes.

    `reason` is why the graph breaks in any case: where a branch, a caller or an attribute needs the value, or the value
    is no whole number. `conditions` ask for the latter at trace time, where the source does not tell it, and for no
    gradient, where none can be compiled (`without_gradient`).
    """

    first: Untraced
    reason: str | None
    written: tuple[tuple[ast.expr, str], ...]
    helpers: tuple[Helper, ...]
    conditions: tuple[str, ...]
    without_gradient: bool = False


def captured(site: Site, statement: ast.stmt) -> Captured | None:
    """What the statement reads that a graph can carry as symbols; None where it reads nothing of the kind.

    None also where the graph breaks at the statement in any case.
    """
    evaluated = {id(part) for part in untraced.evaluated(site, statement)}
    breaks = [
        found
        for node in untraced.suspects(site).of(statement)
        if id(node) in evaluated and (found := untraced.read_at(site, node)) is not None
    ]
    if (statistics := _statistics(site, breaks)) is not None and _can_be_exchanged(statement, statistics.written):
        return statistics
    written = list(_stores(site, statement))
    outer = _whole(site, statement)
    for each in breaks:
        texts = _in_graph(site, outer.get(id(each.node), each.node))
        if not texts:
            return None
        written += texts
    if not written or not _can_be_exchanged(statement, written):
        return None
    names = {name for name in HELPERS if any(f"{name}(" in text for _, text in written)}
    answers = _answers(site, statement, written, names)
    written, reason = list(answers.written), answers.reason
    shaped = as_shape(site, statement, [node for node, text in written if text.startswith("_numbers_in_graph(")])
    if shaped is not None:
        reason = f"{shaped}; manually give the sizes as numbers of Python"
    read = [inner for each in breaks if id(each.node) not in outer and (inner := _read(site, each.node)) is not None]
    if (fraction := next((inner for inner in read if has_fraction(site, inner)), None)) is not None:
        why = f"`{short(fraction)}` is no whole number, and the graph breaks where such a number is read"
        reason = f"{why}; manually compute with the tensor instead"
    boxes = [some for each in breaks if (some := kept(site, each.node)) is not None]
    needed = [*(helpers(site, names) if names else ()), *(each for some in boxes for each in some.helpers)]
    counted = [node for node, text in written if text.startswith(_COUNTED) and isinstance(node, ast.Call)]
    asked = [
        *(each for inner in read for each in whole_at_trace(site, inner)),
        *(each for some in boxes for each in some.conditions),
        *_are_made(site, written, counted),
    ]
    return Captured(
        breaks[0] if breaks else Untraced(written[0][0], "writes under a boolean mask", ""),
        reason,
        tuple(written),
        tuple(dict.fromkeys(needed)),
        tuple(dict.fromkeys([*answers.passed, *asked, *answers.off, *answers.widths])),
        bool(answers.off) or any(_breaks_for_a_gradient(site, node) for node in counted),
    )


class _Answers(NamedTuple):
    """What is `written` where Python asks for no value of what is written, or the `reason` why it does.

    The others are conditions: for what is `passed` by, for gradients that are `off`, and for `widths`.
    """

    reason: str | None
    written: Sequence[tuple[ast.expr, str]]
    passed: Sequence[str] = ()
    off: Sequence[str] = ()
    widths: Sequence[str] = ()


def _answers(site: Site, statement: ast.stmt, written: Sequence[tuple[ast.expr, str]], names: set[str]) -> _Answers:
    is_number = any("number" in name or "integer" in name for name in names)
    way_out = _PASS_IN if is_number else "manually compute all elements and select with `torch.where`"
    why = why_value_is_asked(site, [node for node, text in written if "number" in text or "integer" in text])
    if why is not None:
        return _Answers(f"{why}; {way_out}", written)
    passed, why = avoided(site, statement, is_number=is_number)
    chosen = [node for node, text in written if _CHOOSES.search(text)]
    numbers, scope = [node for node, text in written if not _CHOOSES.search(text)], site.evaluator.scope.node
    if why is None:
        why = why_truth_is_asked(site, statement, chosen)
    if why is not None:
        return _Answers(f"{why}; {way_out}", written, passed)
    counts = sizes_in(scope, rows_of(scope, chosen))
    off: list[str] = []
    if (why := why_not_taken(site, [*numbers, *counts])) is None:
        why, off = unanswered(site, chosen, [*numbers, *counts])
    if why is None:
        why, cut = unanswered_cut(site, rows_of(scope, (), [*numbers, *counts]), counts)
        off = list(dict.fromkeys([*off, *cut]))
    if why is not None:
        return _Answers(f"{why}; {way_out}", written, passed, off)
    why, flat, widths = widths_kept(site, chosen, numbers)
    unchanged = {id(node) for node, _ in written} - set(map(id, flat))
    written = [(node, text if id(node) in unchanged else f"{text}.flatten()") for node, text in written]
    return _Answers(f"{why}; {way_out}" if why is not None else None, written, passed, off, widths)


def _are_made(site: Site, written: Sequence[tuple[ast.expr, str]], counted: Sequence[ast.Call]) -> Iterator[str]:
    """The conditions under which what is written in the place of nodes gives what they give."""
    owners = [owner for node in counted if (owner := _owner(site, node)) is not None and dotted(owner) is not None]
    yield from (f"isinstance({site.text(each)}, {site.torch}.Tensor)" for each in owners if site.value(each).hint)
    yield from _seeming(site, written)
    for node, text in written:
        if f".{_MADE}(" in text and isinstance(node, ast.Call):
            yield from _is_made(site, node)


def _owner(site: Site, call: ast.Call) -> ast.expr | None:
    """The `x` of `x.unique()`, which may be a module as well: `lib.bincount(x)`."""
    return call.func.value if isinstance(call.func, ast.Attribute) and site.resolve(call.func) is None else None


def _breaks_for_a_gradient(site: Site, call: ast.Call) -> bool:
    """True for `torch.unique(x)` of what may need a gradient, which eager mode has none for: the graph breaks there."""
    owner = _owner(site, call)
    given = [*([owner] if owner is not None else []), *call.args, *(word.value for word in call.keywords)]
    return not all((value := site.value(each)).is_python or (value.dtype or "").startswith(_WHOLE) for each in given)


def rewritten(site: Site, statement: ast.stmt, found: Captured, deeper: int) -> Iterator[str | Original]:
    """The statement with what is `written` in it, `deeper` levels further to the right."""
    whole = site.span(statement)
    line, column = whole.start_line, whole.start_column
    for node, text in sorted(found.written, key=lambda each: (each[0].lineno, each[0].col_offset)):
        span = site.span(node)
        yield Original(Span(line, column, span.start_line, span.start_column), deeper)
        yield text
        line, column = span.end_line, span.end_column
    yield Original(Span(line, column, whole.end_line, whole.end_column), deeper)


def helpers(site: Site, names: set[str]) -> tuple[Helper, ...]:
    """What these functions of the module need, themselves included."""
    wanted, found = needed(names), [NAMING]
    for name, text in TEXTS.items():
        if name in wanted:
            lines = decorator(site, name.strip("_"), SCHEMAS[name]) if name in SCHEMAS else []
            source = text.format(torch=site.torch, operator="\n".join(lines)).strip("\n")
            since = _SINCE.get(name, "")
            found.append(Helper(name, source, shared=True, since=since))
    return tuple(found)


def _stores(site: Site, statement: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    """`x[mask] = rows`, whose gradient for the rows selects by the mask."""
    if not isinstance(statement, ast.Assign) or not site.value(statement.value).is_tensor:
        return
    for target in statement.targets:
        if isinstance(target, ast.Subscript) and not site.value(statement.value).is_single:
            text = indexed(site, target)
            if text is not None:
                yield target, text


def _in_graph(site: Site, node: ast.expr) -> list[tuple[ast.expr, str]]:
    """What is written for a node that reads a number or a size from the data; nothing where a graph cannot carry it."""
    if isinstance(node, ast.Subscript):
        if is_array(site, node.value):
            return []  # no tensor, so Dynamo would not select by what a graph has in the place of its mask
        text = indexed(site, node)
        return [(node, text)] if text is not None else _counted(site, bounds(node))
    if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
        return []
    if (boxes := kept(site, node)) is not None:
        return [(node, boxes.text)]
    if isinstance(node.func, ast.Attribute) and made_of_list(site, node) is not None:
        return [(node, f"{site.text(node.func.value)}.{_MADE}({site.text(node.args[0])})")]
    called = site.resolve(node.func)
    owner = node.func.value if isinstance(node.func, ast.Attribute) and called is None else None
    read = _read(site, node)
    if read is not None and is_of_numpy(site, read):
        return []  # an array, which has no symbols for its numbers
    if read is not None:
        text = site.text(read)
        return [(node, f"{_READS[node.func.attr]}({text})" if read is owner else f"_integer_in_graph({text})")]  # type: ignore[attr-defined]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "topk":
        return []  # nobody tried it with a `k` that a graph does not know
    name = torch_api.torch_function(called)
    if name == "arange" and len(node.args) > 2 and sum(is_number(site, each) for each in node.args) > 1:
        return []  # its length is a quotient of symbols, which each operator that gets it has to know
    text = search_in_graph(site, node, name, owner)
    return [(node, text)] if text is not None else _counted(site, sizes(node, called))


def _read(site: Site, node: ast.AST) -> ast.expr | None:
    """The `t` of `int(t)`, `t.item()` and `t.tolist()`; None for anything else."""
    if not isinstance(node, ast.Call):
        return None
    called = site.resolve(node.func)
    if called in _CASTS and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        return item_of(node.args[0]) or node.args[0]
    method = node.func if called is None and isinstance(node.func, ast.Attribute) else None
    return method.value if method is not None and method.attr in _READS and not node.args else None


def _statistics(site: Site, breaks: Sequence[Untraced]) -> Captured | None:
    """The numbers of any kind that a statement reads, where all that it reads is only kept and computed with."""
    read = [(each.node, inner) for each in breaks if (inner := _real(site, each.node)) is not None]
    dtypes = {site.value(inner).dtype or "" for _, inner in read}
    whole = all(each.startswith(("torch.int", "torch.uint")) for each in dtypes)
    if len(read) < len(breaks) or whole or any(each.startswith(("bool:", BOOL)) for each in dtypes):
        return None
    if not only_kept(site, [node for node, _ in read]):
        return None
    texts = [(node, f"_fraction_in_graph({site.text(inner)})") for node, inner in read]
    written = tuple((node, text if item_of(node) is not None else f"float({text})") for node, text in texts)
    return Captured(breaks[0], None, written, helpers(site, {"_fraction_in_graph"}), ())


def _real(site: Site, node: ast.expr) -> ast.expr | None:
    """The `t` of `t.item()` and `float(t)`; None for anything else."""
    if (read := item_of(node)) is not None or not isinstance(node, ast.Call):
        return read
    alone = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
    return node.args[0] if alone and site.resolve(node.func) == "builtins.float" else None


def _whole(site: Site, statement: ast.stmt) -> dict[int, ast.Call]:
    """Calls of `int`, by the identity of themselves and of the `x.item()` that they are given: for any number `x`."""
    found: dict[int, ast.Call] = {}
    for node in walk(statement):
        if isinstance(node, ast.Call) and site.resolve(node.func) in _CASTS and _read(site, node) is not None:
            found[id(node)] = found[id(node.args[0])] = node
    return found


def _counted(site: Site, sizes: Iterable[ast.expr]) -> list[tuple[ast.expr, str]]:
    """Sizes that are tensors, as numbers, and those beside them that may be tensors."""
    given = [each for each in sizes if not isinstance(each, ast.Constant) and not site.value(each).is_python]
    known = any(is_number(site, each) for each in given)
    may = given if known else [each for each in given if is_count(site, each)]
    return [(each, f"_number_in_graph({site.text(each)})") for each in may]


def _is_made(site: Site, node: ast.Call) -> Iterator[str]:
    """The conditions under which `x.new(numbers)` is `x.new_tensor(numbers)`: a tuple may be a size."""
    if isinstance(node.func, ast.Attribute) and not site.value(node.func.value).is_tensor:
        yield f"isinstance({site.text(node.func.value)}, {site.torch}.Tensor)"
    yield f"isinstance({site.text(node.args[0])}, list)"


def _seeming(site: Site, written: Sequence[tuple[ast.expr, str]]) -> list[str]:
    """The condition for a size that only seems to be a tensor; none for several, of which any may be one."""
    sizes = [node for node, text in written if text.startswith("_number_in_graph(") and item_of(node) is None]
    if len(sizes) != 1 or dotted(sizes[0]) is None or is_number(site, sizes[0]):
        return []
    return [f"isinstance({site.text(sizes[0])}, {site.torch}.Tensor)"]


def _can_be_exchanged(statement: ast.stmt, written: Sequence[tuple[ast.expr, str]]) -> bool:
    """False where one of the nodes is part of another, or something cannot be written twice."""
    nodes = [node for node, _ in written]
    if any(part is not node and any(part is other for other in nodes) for node in nodes for part in walk(node)):
        return False
    return not any(isinstance(part, _ONCE) for part in walk(statement))
