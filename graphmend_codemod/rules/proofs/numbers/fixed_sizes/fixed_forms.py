"""Operators that read a number out of a tensor, each with one of a fixed size that does the same with the tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis import aliasing, torch_api
from graphmend_codemod.analysis.outline import Outline
from graphmend_codemod.analysis.patterns import (
    elements_of,
    is_basic,
    is_integer,
    is_name,
    last_name,
    pairs_of,
)
from graphmend_codemod.analysis.scope import children, dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import INT64
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.project.summary.candidates import FILLS
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.filled import filled
from graphmend_codemod.rules.proofs.untraced.evidence import holds_no_tensor

_READS = frozenset({"int", "float", "range"})
OPERATORS = frozenset({"roll", "tolist", "repeat_interleave", "masked_select", "nonzero", "argwhere", *FILLS})
_BUILDS = frozenset({"eye", "ones", "zeros", "full", "arange"})
_CASTS = frozenset({"int", "float", "bool"})
_MAY_READ = (ast.Name, ast.Subscript, ast.Call, ast.UnaryOp, ast.Compare)
_BEGINS = (ast.Name, ast.Subscript, ast.BinOp, ast.Call)
_SIGNED = (ast.Add, ast.Sub, ast.Mult)


class FixedForm(NamedTuple):
    """What takes the place of an operator where the conditions are true."""

    node: ast.expr
    text: str
    conditions: tuple[str, ...]
    sized: bool = False
    """True where the tensor is not read at all: the source tells the size."""
    helpers: tuple[Helper, ...] = ()
    copied: ast.expr | None = None
    """What is written is a copy: `x[t.reshape(1)] = y` raises where `y` is a view of `x`, and `x[t] = y` does not."""


def candidates(outline: Outline) -> list[ast.expr]:
    """What may be one of these operators, by its look alone."""
    found: list[ast.expr] | None = outline.notes.get("fixed forms")
    if found is None:
        calls = [call for call in outline.calls if last_name(call.func) in OPERATORS]
        found = outline.notes["fixed forms"] = [*calls, *filter(_may_read, outline.subscripts)]
    return found


def _may_read(node: ast.Subscript) -> bool:
    if isinstance(node.ctx, ast.Del):
        return False
    if isinstance(node.value, ast.Call) and last_name(node.value.func) == "one_hot":
        return True
    return any(isinstance(each, _MAY_READ) or _is_window(each) for each in elements_of(node.slice))


def _is_window(part: ast.expr) -> bool:
    """True for `start:stop` and `start:start + n`, as in an index that may begin where a tensor says."""
    return isinstance(part, ast.Slice) and isinstance(
        part.lower or part.upper, (ast.Name, ast.Subscript, ast.BinOp, ast.Call)
    )


def fixed_form(site: Site, statement: ast.stmt, node: ast.expr) -> FixedForm | None:
    """What takes the place of an operator; None for one that reads nothing, NotProven where no form does the same."""
    # What is imported here is large, and a commit hook waits for it.
    if isinstance(node, ast.Call) or "eye" in site.evaluator.scope.outline.words:
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import of_known_size

        if (known := of_known_size(site, statement, node)) is not None:
            return known
    if not _BUILDS.isdisjoint(site.evaluator.scope.outline.words):
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.counted_masks import selected_by_sizes

        if (counted := selected_by_sizes(site, statement, node)) is not None:
            return counted
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.compared_ranges import selected_by_range

        if (compared := selected_by_range(site, node)) is not None:
            return compared
    if isinstance(node, ast.Call):
        made = filled(site, node)
        if made is not None:
            return FixedForm(node, *made)
        return _rolled(site, node) if last_name(node.func) == "roll" else None
    assert isinstance(node, ast.Subscript)
    if isinstance(node.value, ast.Call) and last_name(node.value.func) == "one_hot":
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.cut_classes import cut_to_classes

        return cut_to_classes(site, statement, node, node.value)
    if any(map(_is_window, elements_of(node.slice))):
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.stored_windows import stored_window

        if (window := stored_window(site, statement, node)) is not None:
            return window
    return _element(site, statement, node)


def _is_read(site: Site, node: ast.expr) -> bool:
    """True for an element of a tensor of which the function takes another for a Python number, and a 0-dim tensor."""
    if not isinstance(node, ast.Subscript):
        return site.value(node).is_single and site.value(node).dtype == INT64
    if not isinstance(node.value, ast.Name) or isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return False
    name = node.value.id

    def look() -> set[str]:
        calls = site.evaluator.scope.outline.calls
        given = [each for call in calls if last_name(call.func) in _READS for each in call.args]
        given += [
            call.func.value for call in calls if last_name(call.func) == "item" and isinstance(call.func, ast.Attribute)
        ]
        elements = [each for each in given if isinstance(each, ast.Subscript) and isinstance(each.value, ast.Name)]
        return {dotted(each.value) or "" for each in elements if not isinstance(each.slice, (ast.Slice, ast.Tuple))}

    known = site.remembered("read elements", site.evaluator.scope.node, look, anywhere=True)
    return name in known and not site.value(node.value).is_python


def _element(site: Site, statement: ast.stmt, node: ast.Subscript) -> FixedForm | None:
    """`x[:, t.reshape(1)].squeeze(1)` for `x[:, t]`."""
    parts = elements_of(node.slice)
    chosen = [part for part in parts if _is_read(site, part)]
    others = [part for part in parts if part not in chosen]
    if len(chosen) != 1 or site.value(node.value).is_python or not all(map(is_basic, others)):
        return None
    if isinstance(node.value, ast.Name) and holds_no_tensor(site, node.value.id):
        return None
    index = chosen[0]
    if dotted(node.value) is None:
        raise NotProven(f"`{short(node.value)}` would be computed twice; assign it to a variable first")
    if _is_read_back(statement, node):
        return None
    place = sum(isinstance(part, ast.Slice) for part in parts[: parts.index(index)])
    if any(isinstance(part, ast.Constant) and part.value is Ellipsis for part in parts[: parts.index(index)]):
        place = -1 - sum(isinstance(part, ast.Slice) for part in parts[parts.index(index) :])
    conditions = [
        *tensor_asked(site, node.value),
        *_single(site, index),
        _device(site, index, node.value),
    ]
    written = {id(index): (index, f"{site.operand(index)}.reshape(1)")}
    text = site.but(written=written).text(node)
    if isinstance(node.ctx, ast.Store):
        asked, value = _stored(site, statement, node, place)
        return FixedForm(node, text, (*conditions, *asked), copied=value)
    _demand_no_view(site, statement, node)
    return FixedForm(node, f"{text}.squeeze({place})", tuple(conditions))


def _stored(site: Site, statement: ast.stmt, node: ast.Subscript, place: int) -> tuple[list[str], ast.expr | None]:
    """When `x[t.reshape(1)] = y` does what `x[t] = y` does, which converts what it copies; and a tensor `y`."""
    value = pairs_of(statement).get(id(node)) or getattr(statement, "value", None)
    if value is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        raise NotProven(f"`{short(node)}` is written in another way than by an assignment")
    if site.value(value).is_python and not site.value(value).hint:
        return [], None
    if place or isinstance(statement, ast.AugAssign):
        raise NotProven(
            f"`{short(value)}` may have another shape; manually write to `{short(node.value)}` under a mask"
        )
    if dotted(value) is None:
        raise NotProven(f"`{short(value)}` may have another dtype; assign it to a variable first")
    stored, owner = site.text(value), site.text(node.value)
    return [
        *tensor_asked(site, value),
        *(f"{stored}.{each} == {owner}.{each}" for each in ("dtype", "device")),
    ], value


def tensor_asked(site: Site, node: ast.expr) -> list[str]:
    value = site.value(node)
    return [] if value.is_tensor and not value.hint else [f"isinstance({site.text(node)}, {site.torch}.Tensor)"]


def _single(site: Site, node: ast.expr) -> list[str]:
    """Conditions under which an expression is a tensor of one integer, in no more than one dimension."""
    dtype = site.value(node.value if isinstance(node, ast.Subscript) else node).dtype or ""
    if dtype.startswith("torch.") and dtype != INT64:
        raise NotProven(f"`{short(node)}` is no int64")
    if isinstance(node, ast.Subscript):
        owner = site.text(node.value)
        found = [*tensor_asked(site, node.value), f"{owner}.dim() == 1"]
        found += [] if _counts(site, node.slice) else [f"isinstance({site.text(node.slice)}, int)"]
        return [*found, f"{owner}.dtype == {site.torch}.int64"]
    value, text = site.value(node), site.text(node)
    if value.is_single and value.dtype == INT64 and not value.hint:
        return []
    sizes = [f"{text}.dim() == 0"] if value.is_single else [f"{text}.dim() <= 1", f"{text}.numel() == 1"]
    return [*tensor_asked(site, node), *sizes, f"{text}.dtype == {site.torch}.int64"]


def _counts(site: Site, node: ast.expr) -> bool:
    """True for an integer: a literal, or the number of a step of the statement's own comprehension over a range."""
    if is_integer(node):
        return True
    steps = [each for each in walk_in_layers(site.place.statement) if isinstance(each, ast.comprehension)]
    ranges = [each for each in steps if is_name(each.target, getattr(node, "id", ""))]
    return bool(ranges) and all(
        isinstance(each.iter, ast.Call) and site.resolve(each.iter.func) == "builtins.range" for each in ranges
    )


def _device(site: Site, index: ast.expr, tensor: ast.expr) -> str:
    owner = index.value if isinstance(index, ast.Subscript) else index
    return f"{site.text(owner)}.device == {site.text(tensor)}.device"


def _is_read_back(statement: ast.stmt, node: ast.Subscript) -> bool:
    """True for `x[t].item()` and `int(x[t])`, which read a number whatever chose it."""
    for part in walk_in_layers(statement):
        if isinstance(part, ast.Attribute) and part.value is node and part.attr in {"item", "tolist"}:
            return True
        if isinstance(part, ast.Call) and node in part.args and last_name(part.func) in _CASTS:
            return True
    return False


def _demand_no_view(site: Site, statement: ast.stmt, node: ast.Subscript) -> None:
    """NotProven where somebody can tell the element, which is a view in eager mode, from a copy."""
    parents = {id(child): part for part in walk_in_layers(statement) for child in children(part)}
    inner: ast.AST = node
    listed = False
    pairs = pairs_of(statement)
    while (parent := parents.get(id(inner))) is not None:
        if isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp)) and not listed:
            return
        if isinstance(parent, ast.Call):
            effect = _effect(site, parent, inner)
            if effect.writes or not effect.known:
                break
            if not effect.shares:
                return
        elif not isinstance(parent, (ast.List, ast.Tuple, ast.ListComp, ast.Attribute)) or id(inner) in pairs:
            break
        listed = listed or not isinstance(parent, (ast.Call, ast.Attribute))
        inner = parent
    target = pairs.get(id(inner))
    if isinstance(target, ast.Subscript) and site.value(target.value).is_tensor and not listed:
        return  # it is copied
    if listed or not isinstance(target, ast.Name):
        raise NotProven(f"a view of `{short(node)}` may be written in place; assign it to a variable first")
    viewed = dotted(node.value) or ""
    from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write  # a commit hook waits for it

    demand_no_write(site, statement, {target.id, viewed}, {target.id})


def _effect(site: Site, call: ast.Call, inner: ast.AST) -> aliasing.Effect:
    """What a call does with memory: of a function of torch, or of a method of `inner` or of another tensor."""
    name = torch_api.torch_function(site.resolve(call.func))
    if name is not None:
        return aliasing.of_operator(name, call)
    if isinstance(call.func, ast.Attribute) and (call.func is inner or site.value(call.func.value).is_tensor):
        return aliasing.of_operator(call.func.attr, call, call.func.value)
    return aliasing.unknown(call)


def _rolled(site: Site, call: ast.Call) -> FixedForm | None:
    """`x.index_select(d, (torch.arange(n) - t) % n)` for `torch.roll(x, int(t), d)`."""
    given = list(call.args)
    if torch_api.torch_function(site.resolve(call.func)) == "roll":
        tensor = given.pop(0) if given else None
    elif isinstance(call.func, ast.Attribute) and site.resolve(call.func) is None:
        tensor = call.func.value
    else:
        return None
    words = {word.arg: word.value for word in call.keywords}
    tensor = words.pop("input", tensor)
    shift = given.pop(0) if given else words.pop("shifts", None)
    dim = given.pop(0) if given else words.pop("dims", None)
    if tensor is None or shift is None or given or words:
        return None
    read = list(_read(site, shift))
    if not read:
        return None
    if dim is None or not (is_integer(dim) or dotted(dim)):
        raise NotProven("its dimension is no constant; pass one: `dims=1`")
    if dotted(tensor) is None:
        raise NotProven(f"`{short(tensor)}` would be computed twice; assign it to a variable first")
    conditions = tensor_asked(site, tensor)
    written: dict[int, tuple[ast.expr, str]] = {}
    for part, inner in read:
        if dotted(inner) is None and not _is_read(site, inner):
            raise NotProven(f"`{short(inner)}` may be no tensor of one integer; assign it to a variable first")
        conditions += _single(site, inner)
        written[id(part)] = (part, site.operand(inner))
    conditions += [f"isinstance({name}, int)" for name in (*_numbers(dim), *_numbers(shift))]
    conditions += [_device(site, inner, tensor) for _, inner in read]
    x, d = site.text(tensor), site.text(dim)
    size, sign = f"{x}.size({d})", "-"
    if isinstance(shift, ast.UnaryOp):
        shift, sign = shift.operand, "+"
    moved = site.but(written=written).operand(shift)
    text = f"{x}.index_select({d}, ({site.torch}.arange({size}, device={x}.device) {sign} {moved}) % {size})"
    return FixedForm(call, text, tuple(dict.fromkeys(conditions)))


def _read(site: Site, node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of arithmetic that read a number, each with what it reads: `int(t)` and `t`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _read(site, node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _SIGNED):
        yield from _read(site, node.left)
        yield from _read(site, node.right)
    elif (read := number_read(site, node, INTEGER_CAST)) is not None:
        yield node, read


def _numbers(node: ast.expr) -> Iterator[str]:
    """The other names in that arithmetic. NotProven for what is neither."""
    if isinstance(node, ast.UnaryOp):
        yield from _numbers(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _SIGNED):
        yield from _numbers(node.left)
        yield from _numbers(node.right)
    elif isinstance(node, (ast.Name, ast.Attribute)) and (name := dotted(node)) is not None:
        yield name
    elif not isinstance(node, ast.Call) and not is_integer(node):
        raise NotProven(f"cannot infer that `{short(node)}` is an integer; assign it to a variable first")
