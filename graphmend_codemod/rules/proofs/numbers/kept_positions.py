"""A position that is read out of a tensor, at which a slice of a known length is written, and that is moved on.

`at = int(self.at)`, `self.queue[:, at : at + n] = keys.T`, `at = (at + n) % self.size`, `self.at[0] = at`: the queue of
contrastive learning. The compile path keeps the position in its tensor, and writes where `at + torch.arange(n)` says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.patterns import (
    all_names,
    elements_of,
    is_integer,
    is_name,
    is_whole,
    mentions,
    names_beyond,
    only_target,
)
from graphmend_codemod.analysis.scope import dotted, walk, walk_in_layers
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts

_COMMENT = "# The position stays in its tensor: its number would have to be read back to Python."
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv)
_TURNED = frozenset({"t", "transpose", "permute", "detach", "contiguous", "to", "clone", "float", "half"})


def position_kept(site: Site, node: ast.Assign, name: str, tensor: ast.expr) -> Edit | None:
    """The statements from the one that reads the position to the last that uses it, with a compile path in front.

    None where no slice is written at the position, NotProven where it may be used for something else.
    """
    body, position = site.place.blocks[-1]
    rest = list(body[position + 1 :])
    last = max((number for number, each in enumerate(rest) if mentions(each, name)), default=None)
    if last is None or not any(_slice_at(part, name) for each in rest for part in walk(each)):
        return None
    if dotted(tensor.value if isinstance(tensor, ast.Subscript) else tensor) is None:
        raise NotProven(f"`{short(tensor)}` would be computed twice; assign it to a variable first")
    text, torch = site.text(tensor), site.torch
    # `self.at[0] = n` raises for a tensor without dimensions.
    one = f"{text}.shape == (1,)" if any(_element_of(part, text, site) for each in rest for part in walk(each)) else ""
    facts = [*tensor_facts(site, tensor), f"{text}.dtype == {torch}.int64", one or f"{text}.numel() == 1"]
    if any(isinstance(part, ast.If) and mentions(part.test, name) for each in rest for part in walk(each)):
        from graphmend_codemod.rules.proofs.numbers.wrapped_positions import wrapped_path  # few need it

        asked, lines = wrapped_path(site, name, tensor, rest[: last + 1])
        return two_paths(site, [node, *rest[: last + 1]], [site.compiling, *facts, *asked], [_COMMENT, *lines])
    kept = _Kept(site, name)
    lines = [line for each in rest[: last + 1] for line in kept.lines(each)]
    if any(names_beyond(site.evaluator.scope.node, {name}, [node, *rest[: last + 1]])):
        raise NotProven(f"`{name}` is used in other places as well")
    lines = [_COMMENT, f"{name} = {text}.reshape(()).clone()", *lines]
    return two_paths(site, [node, *rest[: last + 1]], [site.compiling, *facts, *kept.conditions], lines)


def demand_other_memory(site: Site, rows: str, queue: ast.expr) -> None:
    """NotProven where a local name of rows was given a part of the queue itself."""
    held = site.text(queue)
    for part in walk(site.evaluator.scope.node):
        given = isinstance(part, ast.Assign) and any(is_name(target, rows) for target in part.targets)
        if isinstance(part, ast.Assign) and given and any(dotted(each) == held for each in walk(part.value)):  # type: ignore[arg-type]
            raise NotProven(f"`{rows}` may share memory with `{held}` since `{short(part)}`")


def _element_of(node: ast.AST, text: str, site: Site) -> bool:
    """True for `self.at[0]` that is written, where `text` is `self.at`."""
    written = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and is_integer(node.slice)
    return written and site.text(node.value) == text  # type: ignore[attr-defined]


def _slice_at(node: ast.AST, name: str) -> ast.Slice | None:
    """`at : at + n` in a subscript that is written, beside whole dimensions."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return None
    parts = elements_of(node.slice)
    found = [part for part in parts if isinstance(part, ast.Slice) and is_name(part.lower, name)]
    others = [part for part in parts if part not in found]
    return found[0] if len(found) == 1 and all(map(is_whole, others)) and dotted(node.value) is not None else None


class _Kept:
    """Writes statements anew; `conditions` are what has to hold before the first of them."""

    def __init__(self, site: Site, name: str) -> None:
        self.site, self.name = site, name
        self.conditions: dict[str, None] = {}
        self.bound: set[str] = set()

    def lines(self, node: ast.stmt) -> Iterator[str]:
        """The text of a statement with the position in its tensor."""
        if isinstance(node, ast.If) and not mentions(node.test, self.name):
            yield f"if {self.site.text(node.test)}:"
            yield from (f"    {line}" for each in node.body for line in self.lines(each))
            if node.orelse:
                yield "else:"
                yield from (f"    {line}" for each in node.orelse for line in self.lines(each))
            return
        if not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Assert, ast.Pass)):
            raise NotProven(f"`{short(node)}` stands between the position and what is written at it")
        target = only_target(node)
        found = _slice_at(target, self.name) if target is not None else None
        if found is not None:
            yield self._written(node, target, found)  # type: ignore[arg-type]
        else:
            if mentions(node, self.name):
                self._demand_moved_on(node)
            yield self.site.text(node)
        self.bound |= {part.id for part in walk(node) if isinstance(part, ast.Name) and part.ctx.__class__ is ast.Store}

    def _written(self, node: ast.Assign, target: ast.Subscript, found: ast.Slice) -> str:
        end = found.upper
        length = None
        if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add) and found.step is None:
            one, other = (end.left, end.right) if is_name(end.left, self.name) else (end.right, end.left)
            length = other if is_name(one, self.name) else None
        if length is None or mentions(length, self.name) or mentions(node.value, self.name):
            raise NotProven(f"`{short(target)}` has no known length; write `{self.name} : {self.name} + n`")
        self._demand_tensor(node.value, node)
        self._demand_number(length, node)
        site, queue = self.site, self.site.text(target.value)
        for rows in all_names(node.value):
            demand_other_memory(site, rows, target.value)
        self._ask(f"isinstance({queue}, {site.torch}.Tensor)", target.value)
        self._ask(f"0 not in {queue}.stride()", target.value)  # eager mode raises for rows that are one in memory
        places = f"{site.torch}.arange({site.text(length)}, device={queue}.device)"
        places = f"{self.name} + {places}"
        parts = elements_of(target.slice)
        index = ", ".join(places if part is found else site.text(part) for part in parts)
        return f"{queue}[{index}] = {site.operand(node.value)}.to({queue})"

    def _demand_tensor(self, value: ast.expr, statement: ast.stmt) -> None:
        """Let the compile path ask whether what is written is a tensor: `keys.T`."""
        there = self.site.at(statement)
        known = there.value(value) if there is not None else None
        if known is not None and known.is_tensor and not known.hint:
            return
        inner = value
        while True:
            if isinstance(inner, ast.Attribute) and inner.attr in {"T", "mT", "data"}:
                inner = inner.value
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _TURNED:
                inner = inner.func.value
            else:
                break
        if dotted(inner) is None:
            raise NotProven(f"cannot infer that `{short(value)}` is a Tensor; assign it to a variable first")
        known = there.value(inner) if there is not None else None
        if known is None or not known.is_tensor or known.hint:
            self._ask(f"isinstance({self.site.text(inner)}, {self.site.torch}.Tensor)", inner)

    def _demand_number(self, node: ast.expr, statement: ast.stmt) -> None:
        there = self.site.at(statement)
        if is_integer(node) or (there is not None and there.value(node).is_python and isinstance(node, ast.Subscript)):
            return
        if dotted(node) is None:
            raise NotProven(f"cannot infer that `{short(node)}` is an integer; assign it to a variable first")
        self._ask(f"isinstance({self.site.text(node)}, int)", node)

    def _ask(self, question: str, node: ast.expr) -> None:
        if not self.bound.isdisjoint(part.id for part in walk_in_layers(node) if isinstance(part, ast.Name)):
            raise NotProven(f"cannot infer what `{short(node)}` is before `{self.name}` is read")
        self.conditions[question] = None

    def _demand_moved_on(self, node: ast.stmt) -> None:
        """`at = (at + n) % size`, `self.at[0] = at`, and nothing else."""
        value = node.value if isinstance(node, (ast.Assign, ast.AugAssign)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        moved = is_name(targets[0], self.name)
        stored = isinstance(targets[0], ast.Subscript) and isinstance(node, ast.Assign)
        stored = stored and is_integer(targets[0].slice)  # type: ignore[union-attr]
        known = len(targets) == 1 and value is not None and (moved or (stored and mentions(value, self.name)))
        if isinstance(node, ast.AugAssign):
            known = known and isinstance(node.op, _OPERATORS)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            filled = isinstance(call.func, ast.Attribute) and call.func.attr == "fill_" and not call.keywords
            known, value = filled and len(call.args) == 1, call.args[0] if call.args else None
        if not known or value is None:
            raise NotProven(f"`{self.name}` is used as a Python number in `{short(node)}`; keep it a tensor there")
        self._demand_arithmetic(value, node)
        if moved and not isinstance(node, ast.AugAssign) and not mentions(value, self.name):
            raise NotProven(f"`{self.name}` is bound in several places")

    def _demand_arithmetic(self, node: ast.expr, statement: ast.stmt) -> None:
        if is_name(node, self.name):
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            self._demand_arithmetic(node.left, statement)
            self._demand_arithmetic(node.right, statement)
        else:
            self._demand_number(node, statement)
