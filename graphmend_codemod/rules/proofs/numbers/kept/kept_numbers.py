"""Numbers that are read out of tensors, computed with and tested: kept in 0-dim tensors where they are used (GM401).

`n = max(valid.sum().item(), 1.0)`, `share = n / total`, `if n > 0: x = x / n`, `loss.sum() / n`. A Python float is a
float64, and so is the tensor that takes its place; where it meets a tensor of float32, it becomes float32, as the
number does. A test on such a number is computed, and what the branch does is done under it: what it divides by is 1
where the branch is not taken, and what it writes keeps its value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.analysis.patterns import (
    all_names,
    is_integer,
    is_literal,
    is_name,
    names_bound,
    other_side,
    reads_name,
    targets_of,
)
from graphmend_codemod.analysis.scope import parents_in, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition_parts import is_registered
from graphmend_codemod.rules.proofs.memory.later_writes import demand_no_later_write
from graphmend_codemod.rules.proofs.numbers.kept.kept_operands import dotted_in
from graphmend_codemod.rules.proofs.numbers.kept.number_statements import (
    assignments,
    counted,
    counted_up_to,
    is_read_in,
    read_target,
)
from graphmend_codemod.rules.proofs.numbers.kept.number_texts import SIGNS, NumberTexts
from graphmend_codemod.rules.proofs.numbers.kept.under_tests import asked_under, is_known_before
from graphmend_codemod.rules.proofs.select.element_writes import asks_gradient, may_be_written
from graphmend_codemod.rules.proofs.untraced.evidence import assigned

_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.NamedExpr)
_SCALES = (ast.Mult, ast.Div)
_COMMENT = "# Numbers in 0-dim tensors: they would have to be read back to Python."


def kept_numbers(site: Site) -> Edit | None:
    """The edit for the statements from this one to the last use of a number that it reads; None where it reads none.

    NotProven with the reason where one of the uses needs the number.
    """
    region = _Region(site)
    body, position = site.place.blocks[-1]
    for count, statement in enumerate(body[position:], 1):
        region.statement(statement)
        if not region.numbers:
            return None
        if not any(site.reached(statement).live_after(name) for name in region.numbers):
            statements = body[position : position + count]
            asked = asked_under(region.conditions(statements), statements, region.decided)
            return two_paths(site, statements, [site.compiling, *asked], [_COMMENT, *region.lines])
    raise NotProven(f"`{next(iter(region.numbers))}` is used after the statements around it")


class _Region(NumberTexts):
    """Follows statements, and writes them with tensors in the place of numbers.

    `counts` has the mask of which a name counts the true elements, `rounds` the number that one stays below; `taken` is
    the test that a branch is written under, and the mask of which that test asks whether it chooses an element.
    `decided` has the buffers that are written under tests which Dynamo decides, with the innermost of these.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.lines: list[str] = []
        self.counts: dict[str, str] = {}
        self.taken: tuple[str, str] | None = None
        self.level, self.branches = 0, 0
        self.loop: tuple[ast.For, int, int] | None = None
        self.rounds: dict[str, str] = {}
        self.decided: dict[str, ast.expr | None] = {}
        self._test: ast.expr | None = None

    # statements

    def statement(self, node: ast.stmt) -> None:
        """Write one statement anew; NotProven with the reason where that cannot be done."""
        there = self.site.reached(node)
        self.checks.clear()
        if isinstance(node, ast.For) and not node.orelse and self.taken is None:
            self._loop(there, node)
        elif isinstance(node, ast.If):
            self._if(there, node)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) and node.value is not None:
            if any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for part in walk(node)):
                raise NotProven(f"`{short(node)}` is between the number and its use")
            if not self._binds_number(there, node):
                self._other(there, node)
            self._remember(there, node)
        else:
            raise NotProven(f"`{short(node)}` is between the number and its use")

    def _other(self, there: Site, node: ast.stmt) -> None:
        target = next(iter(targets_of(node)), None)
        value = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        number = None if value is None else self.number(there, value)
        written = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)
        if self.taken is not None:
            self._under_test(there, node, *self.taken)
        elif written and number is not None and number.live and isinstance(target, ast.Subscript) and value is not None:
            self._write_under_mask(there, value, target, "", "")
        else:
            self._plain(there, node)

    def _remember(self, there: Site, node: ast.stmt) -> None:
        names = names_bound(node)
        self.made = {name: made for name, made in self.made.items() if not names & {name, *dotted_in(made[1])}}
        self.counts = {name: mask for name, mask in self.counts.items() if mask not in names}
        pairs = list(assignments(node)) if isinstance(node, ast.Assign) else []
        if len(pairs) == 1 and not isinstance(node.value, ast.Tuple):  # type: ignore[attr-defined]
            name, value = pairs[0]
            if there.value(value).is_tensor and not names & {*dotted_in(value)}:
                self.made[name] = (there, value)
        plain = pairs[0][1] if len(pairs) == 1 and self.level == 0 and self.taken is None else None
        kept = isinstance(node, ast.AugAssign)  # the dtype stays
        self.computed += [(name, there, plain) for name in names if not kept]
        self.bound |= names

    def _emit(self, text: str) -> None:
        if self.checks and (self.taken is not None or self.site.settings.guards == "advice"):
            raise NotProven("eager mode raises where it divides by zero; manually bound the divisor: `max(..., 1)`")
        for each in self.checks if self.site.settings.guards == "assert" else ():
            self.lines.append("    " * self.level + f'{self.site.torch}._assert_async({each}, "division by zero")')
        self.checks.clear()
        self.lines.append("    " * self.level + self.site.broken_line(text, 1 + self.level))

    def _loop(self, there: Site, node: ast.For) -> None:
        targets = all_names(node.target)
        if any(self.uses(there, node.iter)) or not targets.isdisjoint(self.numbers):
            raise NotProven(f"`for {short(node.target)} in {short(node.iter)}` needs the number")
        outer, self.loop = self.loop, self.loop or (node, len(self.lines), self.level)
        self._emit(f"for {there.text(node.target)} in {there.text(node.iter)}:")
        self.bound |= targets
        self.rounds |= counted_up_to(there, node)
        before, carried = set(self.numbers), self.carried
        self.carried = carried | names_bound(node)
        self._block(node.body)
        self.carried = carried
        for name in self.numbers.keys() - before - self.counters:
            if there.live_after(name) or self._is_carried(node, name):
                raise NotProven(f"`{name}` is used in another step of the loop")
        self.loop = outer
        self.rounds = {name: stop for name, stop in self.rounds.items() if name not in targets}

    def _is_carried(self, node: ast.For, name: str) -> bool:
        """True where a step may read what an earlier one bound."""
        first = next(part for each in node.body for part in walk(each) if is_name(part, name))
        in_no_branch = any(is_name(part, name) for each in node.body for part in targets_of(each))
        return first.ctx.__class__ is ast.Load or not in_no_branch

    def _block(self, body: Sequence[ast.stmt]) -> None:
        self.level += 1
        for each in body:
            self.statement(each)
        self.level -= 1

    def _if(self, there: Site, node: ast.If) -> None:
        if not any(self.uses(there, node.test)):
            if there.value(node.test).kind is ValueKind.TENSOR:
                raise NotProven(f"`{short(node.test)}` is a data-dependent branch between the number and its use")
            self.branches += 1
            outer, inner = self._test, node.test if is_known_before(there, node.test, self.bound) else None
            for body, self._test in ((node.body, inner), (node.orelse, None)):
                if body:
                    self._emit(f"if {there.text(node.test)}:" if body is node.body else "else:")
                    self._block(body)
            self._test = outer
            self.branches -= 1
            return
        test = self.test(there, node.test)
        if test is None or node.orelse or self.taken is not None:
            raise NotProven(
                f"`{short(node.test)}` decides more than how often something is counted, written or divided"
            )
        name = there.free_name("taken", "is_taken")
        while any(name == each.partition(" = ")[0].strip() for each in self.lines):
            name = f"{name}_"
        self._emit(f"{name} = {test[0]}")
        positive = test[1] if test[1] in self.numbers else None
        self.taken = (name, self.counts.get(positive or "", ""))
        known, self.numbers = self.numbers, {each: sure or each == positive for each, sure in self.numbers.items()}
        for each in node.body:
            self.statement(each)
        self.numbers = {**dict.fromkeys(self.numbers, False), **known}
        self.taken = None

    # numbers

    def _binds_number(self, there: Site, node: ast.stmt) -> bool:
        """Write `n = t.item()`, `n, m = t.item(), s.item()` and `n += 1`; False for any other statement."""
        pairs = list(assignments(node))
        found = [(target, self.number(there, value)) for target, value in pairs]
        if self.taken is not None or not any(number is not None and number.live for _, number in found):
            names = {name for target in targets_of(node) for name in all_names(target)}
            if not names.isdisjoint(self.numbers) and self.taken is None:
                raise NotProven(f"`{short(node)}` binds the name of a number again")
            return self.taken is not None and self._is_counted(there, node)
        read = {name for _, value in pairs[1:] for name in all_names(value)}
        if self.branches or any(number is None or target in read for target, number in found):
            raise NotProven(f"`{short(node)}` binds a number in one branch, or beside something else")
        for (target, number), (_, value) in zip(found, pairs, strict=True):
            assert number is not None
            local = self.site.evaluator.scope.is_local(target)
            if not local or is_seen_elsewhere(self.site.evaluator.scope.node.body, target):
                raise NotProven(f"`{target}` may be read by another function")
            if target in self.counters or not number.live:
                raise NotProven(f"`{short(node)}` binds a number beside something else")
            self._emit(f"{target} = {number.text}")
            self.numbers[target], self.wide[target] = number.nonzero, number.wide
            self.counts.pop(target, None)
            if (mask := counted(there, value)) is not None:
                self.counts[target] = mask
        return True

    def _is_counted(self, there: Site, node: ast.stmt) -> bool:
        """Write `n += 1` under a test."""
        for name, value in assignments(node):
            step = value.right if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) else None
            if not isinstance(value, ast.BinOp) or not is_name(value.left, name) or not is_literal(step, 1):
                continue
            starts = [each for each in assigned(self.site, name) if not is_name(getattr(each, "left", None), name)]
            whole = all(isinstance(each, ast.Constant) and type(each.value) is int for each in starts)
            if not starts or not whole or not there.value(ast.Name(name, ast.Load())).is_python:
                return False
            if name not in self.counters:
                self._lift(name)
            self._emit(f"{name} = {name} + {self.taken[0]}" if self.taken else "")
            return True
        return False

    def _lift(self, name: str) -> None:
        """Make a tensor of a number in front of the loop that counts with it."""
        if is_seen_elsewhere(self.site.evaluator.scope.node.body, name):
            raise NotProven(f"`{name}` may be read by another function")
        loop, at, level = self.loop or (None, len(self.lines), self.level)
        if level or (loop is not None and is_read_in(loop, name)):
            raise NotProven(f"`{name}` is read where it is counted, or is counted in one branch alone")
        zero = f"{self.site.torch}.zeros((), dtype={self.site.torch}.int64, device={self.anchor}.device)"
        self.lines.insert(at, f"{name} = {name} + {zero}")
        self.counters.add(name)
        self.numbers[name] = False

    # uses

    def _plain(self, there: Site, node: ast.stmt) -> None:
        """A statement in which numbers meet tensors of float32."""
        if not names_bound(node).isdisjoint(self.numbers):
            raise NotProven(f"`{short(node)}` binds the name of a number again")
        written, parents = {}, parents_in(node)
        for part, number in self.uses(there, node):
            self._demand_beside(there, node, parents, part)
            written[id(part)] = (part, f"{number.operand}.float()")
        self._emit(there.but(written=written).text(node))

    def _demand_beside(self, there: Site, node: ast.stmt, parents: Mapping[int, ast.AST], part: ast.expr) -> None:
        """NotProven unless a number is in arithmetic with a tensor of float32, which has that dtype afterwards."""
        above = around = parents[id(part)]
        while above is not node:
            if isinstance(above, _LATER):
                raise NotProven(f"`{short(part)}` is computed later, or not in every call")
            above = parents[id(above)]
        other: ast.expr | None = None
        if isinstance(around, ast.BinOp) and type(around.op) in SIGNS:
            other = other_side(around, part)
        elif isinstance(around, ast.AugAssign) and type(around.op) in SIGNS and isinstance(around.target, ast.Name):
            other = read_target(around)
        if other is None or not there.value(other).is_tensor:
            raise NotProven(
                f"`{short(part)}` is used as a Python number in `{short(around)}`; manually keep it a tensor"
            )
        self.demand_float32(there, other)

    # under a test

    def _under_test(self, there: Site, node: ast.stmt, taken: str, mask: str) -> None:
        """A statement that does nothing where the test does not hold."""
        target = next(iter(targets_of(node)), None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Name):
                self._write_under_mask(there, node.value, target, taken, mask)
            else:
                self._write_element(there, node, target, taken)
            return
        value = next((value for _, value in assignments(node)), None)
        scaled = isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and isinstance(value.op, _SCALES)
        number = self.number(there, value.right) if scaled and isinstance(value, ast.BinOp) else None
        if number is None or not number.live or not isinstance(value, ast.BinOp) or not isinstance(target, ast.Name):
            raise NotProven(f"`{short(node)}` may do something where `{taken}` does not hold")
        if not is_name(value.left, target.id) or not there.value(value.left).is_tensor:
            raise NotProven(f"`{short(node)}` may do something where its test does not hold")
        self.demand_float32(there, value.left)
        if isinstance(node, ast.Assign):
            demand_no_later_write(there, [value.left], [target.id])
        else:
            self._ask_written(there, target.id)
        by = f"{self.site.torch}.where({taken}, {number.text}, 1.0).float()"
        sign = SIGNS[type(value.op)]
        self._emit(
            f"{target.id} {sign}= {by}" if isinstance(node, ast.AugAssign) else f"{target.id} = {target.id} {sign} {by}"
        )

    def _ask_written(self, there: Site, name: str) -> None:
        if name in self.bound:
            if not there.sole_owner(name) or asks_gradient(there):
                raise NotProven(f"`{name}` is written in place, and may be a leaf that requires gradients")
            return
        for fact in may_be_written(self.site, name, self.site.place.env[name]):
            self.ask(fact)

    def _write_under_mask(self, there: Site, value: ast.expr, target: ast.Subscript, taken: str, mask: str) -> None:
        """`w[mask] = n`, also under `if mask.sum().item() > 0`, or any other test."""
        name = target.value.id if isinstance(target.value, ast.Name) else ""
        chooser = target.slice
        if there.value(chooser).dtype != BOOL or name in self.bound:
            raise NotProven(f"cannot infer that `{short(target)}` writes under a mask")
        if not there.value(target.value).is_tensor:
            raise NotProven(f"cannot infer that `{name}` is a Tensor")
        torch = self.site.torch
        self.ask(f"isinstance({name}, {torch}.Tensor)")
        self.ask(f"{name}.dtype in ({torch}.float32, {torch}.float64)")
        self._ask_written(there, name)
        self.beside[name] = None
        under = there.operand(chooser)
        same = is_name(chooser, mask) and self._is_only_counted(mask)
        under = under if same or not taken else f"{under} & {taken}"
        self._emit(f"{name}[{under}] = ({self._scalar(there, value)}).to({name}.dtype)")

    def _is_only_counted(self, mask: str) -> bool:
        """True for a mask that nothing changes between counting its elements and writing under it."""
        function = self.site.evaluator.scope.node
        parents = parents_in(function)
        reads = [each for each in walk(function) if reads_name(each, mask)]
        around = [(each, parents[id(each)]) for each in reads]
        plain = all(
            (isinstance(above, ast.Subscript) and above.slice is each)
            or (isinstance(above, ast.Attribute) and above.attr == "sum")
            for each, above in around
        )
        made = self.made.get(mask)
        return plain and made is not None and isinstance(made[1], (ast.BinOp, ast.Compare, ast.UnaryOp))

    def _write_element(self, there: Site, node: ast.Assign, target: ast.Subscript, taken: str) -> None:
        """`self.sums[i] = n` under a test: it keeps what it has where the test does not hold."""
        if not is_registered(there, target.value) or not isinstance(target.slice, (ast.Name, ast.Constant)):
            raise NotProven(f"`{short(target)}` is no element of a buffer")
        kept = there.text(target)
        self._ask_element(there.text(target.value), target.slice)
        self._emit(f"{kept} = {self.site.torch}.where({taken}, {self._scalar(there, node.value)}, {kept})")

    def _ask_element(self, held: str, index: ast.expr) -> None:
        """Ask that a buffer has an element and may be written where eager mode leaves it alone."""
        torch, rounds = self.site.torch, self.rounds.get(getattr(index, "id", ""))
        if rounds is None and not (isinstance(index, ast.Constant) and is_integer(index)):
            raise NotProven(f"`{held}` may have no element where eager mode writes none")
        more = f"> {index.value!r}" if isinstance(index, ast.Constant) else f">= {rounds}"
        leaf = f"not ({torch}.is_grad_enabled() and {held}.requires_grad)"
        for fact in (f"isinstance({held}, {torch}.Tensor)", f"{held}.dim() > 0", f"{held}.shape[0] {more}", leaf):
            self.ask(fact)
        self.beside[held] = None
        self.decided.setdefault(held, self._test if held != self.anchor else None)

    def _scalar(self, there: Site, node: ast.expr) -> str:
        """An expression of numbers and of elements of buffers, which no gradient goes through."""
        inside = list(self.uses(there, node))
        whole = {id(part) for each, _ in inside for part in walk(each)}
        for part in walk(node):
            if id(part) in whole or not isinstance(part, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
                continue
            if not self._is_part_of_element(there, node, part):
                if is_name(part, there.evaluator.scope.self_name):
                    continue
                if self.of_python(there, part) is None:
                    raise NotProven(f"`{short(part)}` may need a gradient, or have more than one element")
                self.ask_numbers(there, part)
        element = any(isinstance(part, ast.Subscript) for part in walk(node))
        if not (inside or element) or any(isinstance(part, (*_LATER, ast.Compare, ast.Starred)) for part in walk(node)):
            raise NotProven(f"`{short(node)}` computes no number")
        if inside and inside[0][0] is node:
            return inside[0][1].text
        written = {id(part): (part, number.operand) for part, number in inside}
        return there.but(written=written).text(node)

    def _is_part_of_element(self, there: Site, node: ast.expr, part: ast.AST) -> bool:
        elements = (each for each in walk(node) if isinstance(each, ast.Subscript) and is_registered(there, each.value))
        return any(part is inner for each in elements for inner in walk(each))
