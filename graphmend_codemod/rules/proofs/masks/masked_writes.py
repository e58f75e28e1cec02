"""Writes under a mask that change nothing where the mask has no true element, and tests whether it has one."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import argument_limits
from graphmend_codemod.analysis.patterns import elements_of, is_name, is_not, same
from graphmend_codemod.analysis.scope import of_kind, walk
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import BOOL, Value, ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.later_writes import demand_no_later_write
from graphmend_codemod.rules.proofs.select.element_writes import may_be_written
from graphmend_codemod.rules.proofs.select.gradient_sources import is_finite_source

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_MOST = 8


class WriteForm(enum.Enum):
    """How a masked write is spelled: a new tensor, `masked_fill_`, or `x[mask] = fill`."""

    COPY = enum.auto()
    FILL = enum.auto()
    INDEX = enum.auto()


class Write(NamedTuple):
    """A masked write of `fill` into `target` under `mask`."""

    target: ast.expr
    mask: ast.expr
    fill: ast.expr
    form: WriteForm

    @property
    def copies(self) -> bool:
        """True when it makes a new tensor and binds it to the target's name."""
        return self.form is WriteForm.COPY


def asked_mask(site: Site, node: ast.expr) -> ast.expr | None:
    """`m` for `m.any()`, `torch.any(m)`, `m.any().item()`, `bool(m.any())`, `m.sum() > 0`; `~m` for `not m.all()`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _reduced(site, node.left, "sum") if _is_above_zero(node.ops[0], node.comparators[0]) else None
    if is_not(node):
        mask = _reduced(site, node.operand, "all")
        return None if mask is None else ast.copy_location(ast.UnaryOp(ast.Invert(), mask), mask)
    return _reduced(site, node, "any") or _reduced(site, node, "sum")


def _is_above_zero(sign: ast.cmpop, bound: ast.expr) -> bool:
    number = bound.value if isinstance(bound, ast.Constant) and type(bound.value) is int else None
    return (number == 0 and isinstance(sign, (ast.Gt, ast.NotEq))) or (number == 1 and isinstance(sign, ast.GtE))


def _reduced(site: Site, node: ast.expr, name: str) -> ast.expr | None:
    """What a reduction of all elements of a tensor is taken of."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    called = site.resolve(node.func)
    if len(node.args) == 1 and (torch_function(called) == name or called == "builtins.bool"):
        return node.args[0] if called != "builtins.bool" else _reduced(site, node.args[0], name)
    if isinstance(node.func, ast.Attribute) and not node.args:
        if node.func.attr == name:
            return node.func.value
        if node.func.attr == "item":
            return _reduced(site, node.func.value, name)
    return None


def neutral(site: Site, body: Sequence[ast.stmt], mask: ast.expr) -> list[str] | None:
    """Trace-time conditions under which a body changes nothing where the mask has no true element.

    None where it does something else than write under that mask; NotProven where it may change something or raise.
    """
    facts: list[str] = []
    made: set[str] = set()
    if len(body) > _MOST or not any(_is_write(site.at(each), each, mask) for each in body):
        return None
    for statement in body:
        inner = site.at(statement)
        if inner is None:
            return None
        found = _write_facts(site, inner, statement, mask)
        if found is None:
            found, name = _computed(site, inner, statement)
            if name is None or found is None:
                return None
            made.add(name)
        for fact in found:
            known = next((part.id for part in of_kind(walk(ast.parse(fact)), ast.Name) if part.id in made), "")
            if known:
                raise NotProven(f"`{known}` is computed in the branch, and the compile path has to ask for it before")
        facts += found
    return list(dict.fromkeys(facts))


def _is_write(site: Site | None, statement: ast.stmt, mask: ast.expr) -> bool:
    """True for a statement that writes under the mask, whether it is known to change nothing or not."""
    write = masked_write(site, statement) if site is not None else None
    return site is not None and write is not None and _views(site, write.mask, mask) is not None


def _computed(site: Site, inner: Site, statement: ast.stmt) -> tuple[list[str] | None, str | None]:
    """What a variable of the branch takes for granted, and its name."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None, None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or site.live_after(target.id):
        return None, None
    hazards = inner.judge(statement.value)
    if why := hazards.where_skipped:
        raise NotProven(why)
    return [f"{text}.is_floating_point()" for text in sorted(hazards.needs_floating)], target.id


def _write_facts(site: Site, inner: Site, statement: ast.stmt, mask: ast.expr) -> list[str] | None:
    """The conditions of one write under the mask; None where the statement is none."""
    write = masked_write(inner, statement)
    if write is not None and (asked := _views(inner, write.mask, mask)) is not None:
        if write.form is WriteForm.INDEX and same(write.mask, mask) and _chosen(write.fill, mask) is not None:
            return _facts_of_rows(site, inner, write)
        return facts_of(site, inner, write, mask, asked)
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return None
    value, sign = statement.value, type(statement.op)
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Invert) and sign is ast.BitAnd:
        value, sign = value.operand, ast.BitOr
    if sign is not ast.BitOr or not same(value, mask):
        return None
    target, known = inner.value(statement.target), inner.value(mask)
    facts = [*_bool_facts(site, statement.target), *_bool_facts(site, mask)]
    shapes = [] if target.shape == known.shape else [f"{statement.target.id}.shape == {site.operand(mask)}.shape"]
    return [*facts, *shapes]


def _views(site: Site, node: ast.expr, mask: ast.expr) -> list[str] | None:
    """Conditions under which an expression is a mask with more dimensions, `m.unsqueeze(1)`; None where it is none."""
    if same(node, mask):
        return []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
        inside = _views(site, node.func.value, mask)
        number = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
        if inside is None or node.func.attr == "bool" or is_converted(site, node):
            return inside
        if node.func.attr == "unsqueeze" and type(number) is int:
            text = site.operand(node.func.value)
            return [*inside, *([f"{text}.dim() > {number - 1}"] if number > 0 else [])]
        return None
    if isinstance(node, ast.Subscript) and (inside := _views(site, node.value, mask)) is not None:
        parts = elements_of(node.slice)
        whole = [each for each in parts if isinstance(each, ast.Slice)]
        plain = all(each.lower is each.upper is each.step is None for each in whole)
        others = [each.value for each in parts if isinstance(each, ast.Constant)]
        if plain and len(whole) + len(others) == len(parts) and all(each in (None, ...) for each in others):
            return [*inside, *([f"{site.operand(node.value)}.dim() > {len(whole) - 1}"] if whole else [])]
    return None


def is_converted(site: Site, node: ast.expr) -> bool:
    """True for `m.to(torch.bool)` and `m.bool()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return False
    if node.func.attr == "to" and len(node.args) == 1:
        return site.resolve(node.args[0]) == BOOL
    return node.func.attr == "bool" and not node.args


def _bool_facts(site: Site, node: ast.expr) -> list[str]:
    """Conditions under which a tensor is bool."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _bool_facts(site, node.operand)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], _ORDERS):
        compared = site.value(node.left)
        if compared.is_tensor:  # what is larger than something, element by element, is bool
            return [f"isinstance({site.text(node.left)}, {site.torch}.Tensor)"] if compared.hint else []
    value, text = site.value(node), site.operand(node)
    if value.is_tensor and not value.hint and (value.dtype or "").startswith("torch.") and value.dtype != BOOL:
        raise NotProven(f"`{text}` is not a mask of bools")
    facts = [] if value.is_tensor and not value.hint else [f"isinstance({text}, {site.torch}.Tensor)"]
    return [*facts, *([f"{text}.dtype == {site.torch}.bool"] if value.dtype != BOOL or value.hint else [])]


def _chosen(node: ast.expr, mask: ast.expr) -> ast.expr | None:
    """`y` for `y[m]`."""
    return node.value if isinstance(node, ast.Subscript) and same(node.slice, mask) else None


def _facts_of_rows(site: Site, inner: Site, write: Write) -> list[str]:
    """Conditions under which `x[m] = y[m]` writes nothing where the mask has no true element."""
    source = _chosen(write.fill, write.mask)
    assert source is not None
    hazards = inner.judge(source) & inner.judge(write.mask)
    if why := hazards.where_skipped:
        raise NotProven(why)
    target, rows, mask = (inner.value(each) for each in (write.target, source, write.mask))
    name, text, asked = (site.operand(each) for each in (write.target, source, write.mask))
    facts = _bool_facts(site, write.mask)
    facts += _tensor_facts(site, write.target) + _tensor_facts(site, source)
    facts += [] if rows.dtype == target.dtype else [f"{text}.dtype == {name}.dtype"]
    facts += [] if rows.shape == target.shape else [f"{text}.shape == {name}.shape"]
    facts += [] if mask.shape == target.shape else [_same_places(site, write, name, asked)]
    return [*facts, *_leaf_facts(site, write, target, name), *_gradient_facts(inner, source, write)]


def _tensor_facts(site: Site, node: ast.expr) -> list[str]:
    value = site.value(node)
    return [] if value.is_tensor and not value.hint else [f"isinstance({site.operand(node)}, {site.torch}.Tensor)"]


def _gradient_facts(inner: Site, given: ast.expr, write: Write) -> list[str]:
    """The condition under which no gradient of zero goes where eager mode sends none."""
    value, env = inner.value(given), inner.place.env
    if inner.no_grad or value.kind is not ValueKind.TENSOR or not value.grad or not inner.roots(given, env):
        return []
    same_leaves = inner.roots(given, env) <= inner.roots(write.target, env)
    finite = isinstance(given, ast.Name) and is_finite_source(inner, given.id, frozenset())
    return [] if same_leaves and finite else [f"not {inner.torch}.is_grad_enabled()"]


def _leaf_facts(site: Site, write: Write, target: Value, name: str) -> list[str]:
    """The condition under which the target may be written; what is no name is taken for what somebody else made."""
    own = target if isinstance(write.target, ast.Name) else target._replace(hint=True)
    return [] if site.no_grad else may_be_written(site, name, own)


def masked_write(site: Site, statement: ast.stmt) -> Write | None:
    """The write under a mask that a statement is; None where there is none."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            return Write(target.value, target.slice, statement.value, WriteForm.INDEX)
        if isinstance(target, ast.Name):
            return _copying(site, target, statement.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr == "masked_fill_" and len(call.args) == 2:
            return Write(call.func.value, call.args[0], call.args[1], WriteForm.FILL)
    return None


def _copying(site: Site, target: ast.Name, value: ast.expr) -> Write | None:
    if not isinstance(value, ast.Call) or value.keywords:
        return None
    name, arguments = torch_function(site.resolve(value.func)), list(value.args)
    if name is None and isinstance(value.func, ast.Attribute):
        name, arguments = value.func.attr, [value.func.value, *arguments]
    if name == "where" and len(arguments) == 3:
        arguments = [arguments[2], arguments[0], arguments[1]] if torch_function(site.resolve(value.func)) else []
    elif name != "masked_fill":
        return None
    if len(arguments) != 3 or not (is_name(arguments[0], target.id)):
        return None
    return Write(arguments[0], arguments[1], arguments[2], WriteForm.COPY)


def facts_of(site: Site, inner: Site, write: Write, base: ast.expr, asked: list[str]) -> list[str]:
    """Trace-time conditions under which the write does nothing where the mask has no true element.

    The write is under `base`, or more dimensions of it, for which `asked` has to hold.
    """
    target, mask, fill = inner.value(write.target), inner.value(write.mask), inner.value(write.fill)
    hazards = inner.judge(write.fill) & inner.judge(base)
    if why := hazards.where_skipped:
        raise NotProven(why)
    if write.form is not WriteForm.COPY and not (fill.is_python or fill.is_single):
        raise NotProven(f"`{site.text(write.fill)}` may have more than one element, as many as the mask selects")
    texts = {id(each): site.operand(each) for each in (write.target, write.mask)}
    name, mask_name = texts[id(write.target)], texts[id(write.mask)]
    facts = _tensor_facts(site, write.target)
    facts += _tensor_facts(site, base) if is_converted(site, write.mask) else _bool_facts(site, base)
    facts += asked
    facts += [f"{text}.is_floating_point()" for text in sorted(hazards.needs_floating)]
    facts += _fitting(site, inner, write, target, fill, name)
    if mask.shape != target.shape:
        facts.append(_same_places(site, write, name, mask_name))
    if write.copies:
        if target.hint or not (isinstance(write.target, ast.Name) and site.sole_owner(write.target.id)):
            demand_no_later_write(site, [write.target], [name])
        facts += site.keeps_graph([write.target])
    else:
        facts += _leaf_facts(site, write, target, name)
    facts += _gradient_facts(inner, write.fill, write)
    return list(dict.fromkeys(facts))


def _fitting(site: Site, inner: Site, write: Write, target: Value, fill: Value, name: str) -> list[str]:
    """What must be asked for the target to hold the fill: torch raises where a number does not fit."""
    if fill.kind is ValueKind.TENSOR:
        if write.form is WriteForm.COPY and not fill.is_single and fill.shape != target.shape:
            raise NotProven(f"`{site.text(write.fill)}` may have a different shape from `{name}`")
        if fill.is_tensor and fill.dtype == target.dtype:
            return []
        return [f"{site.operand(write.fill)}.dtype == {name}.dtype"]
    if argument_limits.fits(inner.evaluator, write.fill, inner.place.env, target) and not target.hint:
        return []
    floating = inner.evaluator.names.tensor(f"float:{inner.evaluator.names.new('dtype')}")
    if not argument_limits.fits(inner.evaluator, write.fill, inner.place.env, floating):
        raise NotProven(f"`{site.text(write.fill)}` may not fit into the dtype of `{name}`, which raises")
    return [f"{name}.is_floating_point()"]


def _same_places(site: Site, write: Write, name: str, mask: str) -> str:
    """The condition under which the mask chooses places of the target and makes it no larger."""
    if write.form is WriteForm.INDEX:
        return f"{name}.shape[: {mask}.dim()] == {mask}.shape"
    return f"{site.torch}.broadcast_shapes({name}.shape, {mask}.shape) == {name}.shape"
