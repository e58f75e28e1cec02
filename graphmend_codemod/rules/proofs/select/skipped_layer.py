"""The two ways through a loop's body that a random number decides between, and the names that they leave different.

`if self.training and torch.rand([]) < self.layerdrop: continue` skips a layer. Both ways are followed through the
statements that the number decides about: with the flags on the way as the header of a compile path asks for them, one
way runs the layer and the other does nothing, or next to nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import all_names, is_literal, is_not, is_within, names_bound, reads_name, same
from graphmend_codemod.analysis.scope import of_kind, walk
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit, Original
from graphmend_codemod.rules.framework.edits import beside
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import flag_text, is_guard, only_tested
from graphmend_codemod.rules.proofs.memory.indirect import is_method_in_place
from graphmend_codemod.rules.proofs.select.layer_draws import Draw

_LEAVES = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Continue, ast.Global, ast.Nonlocal)
_ROUNDS = 8


class Written(NamedTuple):
    """A statement of the author and how many levels deep it lies in the region."""

    statement: ast.stmt
    level: int


class Ways(NamedTuple):
    """What a random number decides about: `statements` of a block, of which one way through runs `first` and `run`.

    `asked` are the conditions on flags, `kept` the names that keep their tensors where the layer is skipped. The layer
    is skipped where `drawn.compared` is `outcome`.
    """

    drawn: Draw
    statements: list[ast.stmt]
    first: list[Written]
    run: list[Written]
    asked: list[str]
    kept: list[str]
    outcome: bool


def tensors_asked(site: Site, found: Ways) -> list[str]:
    """What has to be a tensor. NotProven where it is certainly none."""
    asked = []
    for name in found.kept:
        value = site.place.env.get(name)
        if value is not None and value.is_python:
            raise NotProven(f"`{name}` is a Python value, which cannot be selected")
        if value is None or not value.is_tensor or value.hint:
            asked.append(f"isinstance({name}, {site.torch}.Tensor)")
    return asked


def path_beside(site: Site, found: Ways, conditions: Sequence[str], lines: Sequence[str | Original]) -> Edit:
    """The edit that puts the statements of the author behind a compile path."""
    first, last = found.statements[0], found.statements[-1]
    span = site.span(first).through(site.span(last))
    header = site.header("elif" if site.is_elif(first) else "if", conditions)
    path = [part for line in lines for part in ("\n    ", line)]
    original: tuple[str | Original, ...] = ("\nelse:\n    ", Original(span, 1))
    if len(found.statements) == 1 and isinstance(first, ast.If):
        original = ("\nel", Original(span))
    return beside(site, span, (header, *path, *original))


def ways(site: Site, loop: ast.For, drawn: Draw) -> Ways:
    """What the number decides about in the body of the loop. NotProven where more than tensors would differ."""
    body = loop.body
    start = next(place for place, each in enumerate(body) if is_within(drawn.compared, each))
    while start > 0 and _is_flag(body[start - 1]):
        start -= 1
    reason = NotProven("it is not followed by a layer")
    for end in range(start + 1, len(body) + 1):
        try:
            return _Region(site, loop, drawn, start, end).ways()
        except NotProven as why:
            reason = why.anew()
    raise reason.anew()


class _Region:
    def __init__(self, site: Site, loop: ast.For, drawn: Draw, start: int, end: int) -> None:
        self.site, self.loop, self.drawn = site, loop, drawn
        self.start, self.end = start, end
        self.statements = loop.body[start:end]
        here = site.reached(self.statements[0], "the code")
        self.here = here
        self.assumed: dict[str, tuple[ast.expr, bool]] = {}

    def ways(self) -> Ways:
        for _ in range(_ROUNDS):
            known = len(self.assumed)
            paths = {outcome: _Path(self, outcome) for outcome in (True, False)}
            if len(self.assumed) > known:
                continue
            short_ones = [outcome for outcome, path in paths.items() if path.is_idle]
            if not short_ones:
                self._leave_out(paths)
                continue
            outcome = short_ones[0]
            run, idle = paths[not outcome], paths[outcome]
            if self._acts(run):
                continue
            kept = self._kept(run, idle)
            if kept is not None:
                return Ways(self.drawn, self.statements, run.first, run.rest, self._asked(run), kept, outcome)
        raise NotProven("flags on the way would have to be set and not set")

    def assume(self, node: ast.expr, value: bool) -> bool:
        """The truth of a flag, from now on."""
        if is_not(node):
            return not self.assume(node.operand, not value)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) is value:
            truths = [self.assume(each, value) for each in node.values]
            return all(truths) if value else any(truths)
        return self.assumed.setdefault(ast.dump(node), (node, value))[1]

    def _leave_out(self, paths: dict[bool, _Path]) -> None:
        """Ask that what follows the layer in either case is not done: `if output_attentions: ...`."""
        before = len(self.assumed)
        shared = [each.statement for each in paths[True].rest if each in paths[False].rest]
        for statement in shared:
            if isinstance(statement, ast.If):
                self.assume(statement.test, False)
        if len(self.assumed) == before:
            other = min((path.rest for path in paths.values()), key=len)
            what = short(other[0].statement) if other else "nothing"
            raise NotProven(f"`{what}` would run in place of the layer; manually select the results with `torch.where`")

    def _acts(self, run: _Path) -> bool:
        """Ask that what changes more than names is not done: `if output_attentions: kept.append(x)`."""
        for statement in (each.statement for each in run.rest):
            effect = next((node for node in walk(statement) if _changes_more(node)), None)
            if effect is not None and isinstance(statement, ast.If):
                self.assume(statement.test, False)
                return True
            if effect is not None:
                raise NotProven(f"`{short(effect)}` would change the same where the layer is skipped")
        return False

    def _kept(self, run: _Path, idle: _Path) -> list[str] | None:
        """The names that hold another tensor behind the layer; None where a flag more is asked for."""
        found = []
        changed = {name for each in run.rest for name in names_bound(each.statement)}
        nothing = {name for each in idle.rest for name in names_bound(each.statement)}
        if left := [name for name in run.flags if self._matters(name, set())]:
            raise NotProven(f"`{left[0]}` is read later")
        exposed = _exposed([each.statement for each in (*run.first, *run.rest)])
        for name in sorted(changed | nothing):
            if not self._matters(name, exposed):
                continue
            adds = [
                each.statement
                for each in run.rest
                if isinstance(each.statement, ast.If) and name in names_bound(each.statement)
            ]
            if adds and not any(name in names_bound(each.statement) for each in run.rest if each.statement not in adds):
                for each in adds:
                    self.assume(each.test, False)
                return None
            if name in nothing:
                raise NotProven(f"`{name}` is read later, and would hold something else where the layer is skipped")
            if name not in exposed and not self.here.is_bound(name) and not self._is_bound(name):
                raise NotProven(f"`{name}` is read later, and may be unbound where the layer is skipped")
            found.append(name)
        if not found:
            raise NotProven("no tensor that the layer gives is read later")
        if taken := sorted(set(found) & {name for each in run.first for name in names_bound(each.statement)}):
            raise NotProven(f"`{taken[0]}` changes before the number is compared")
        return found

    def _matters(self, name: str, exposed: set[str]) -> bool:
        around = [*self.loop.body[: self.start], *self.loop.body[self.end :], *self.loop.orelse]
        read = any(reads_name(node, name) for each in around for node in walk(each))
        return read or name in exposed or self.site.live_after(name)

    def _asked(self, run: _Path) -> list[str]:
        """The conditions of the header. NotProven where a flag may be a tensor, or changes on the way."""
        stored = {name for statement in self.statements for name in names_bound(statement)}
        asked = []
        for node, value in self.assumed.values():
            if value and self._is_above_0(node):
                continue  # which is asked anyway
            text = flag_text(self.here, node, value)
            unknown = isinstance(node, ast.Name) and self.here.value(node).kind is ValueKind.UNKNOWN
            if text is None and unknown and isinstance(node, ast.Name) and self._is_bound(node.id):
                text = f"{node.id} is True" if value else f"({node.id} is None or {node.id} is False)"
            read = all_names(node)
            if text is None or read & stored:
                raise NotProven(f"`{short(node)}` may be a tensor, or change before it is asked for")
            asked.append(text)
        if all_names(self.drawn.number) & stored:
            raise NotProven(f"the bound `{short(self.drawn.number)}` changes")
        return [*asked, f"{self.here.operand(self.drawn.number)} > 0"]

    def _is_above_0(self, node: ast.expr) -> bool:
        """True for `self.layerdrop > 0.0` of the bound."""
        above = isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Gt)
        return above and same(node.left, self.drawn.number) and is_literal(node.comparators[0], 0)  # type: ignore[attr-defined]

    def _is_bound(self, name: str) -> bool:
        """True for a local that a statement before the loop certainly binds."""
        return any(name in names_bound(each) for each in of_kind(self.site.place.above(), ast.Assign))


class _Path:
    """The statements that run for one outcome: `first` before the number is compared, `rest` behind it."""

    def __init__(self, region: _Region, outcome: bool) -> None:
        self.region, self.outcome = region, outcome
        self.first: list[Written] = []
        self.rest: list[Written] = []
        self.flags: dict[str, bool] = {}
        self._compared = False
        self._follow(region.statements, 0)

    @property
    def is_idle(self) -> bool:
        """True for a way on which nothing happens, but that names get constants."""
        return all(isinstance(each.statement, ast.Assign) and _is_constant(each.statement) for each in self.rest)

    def _follow(self, body: Sequence[ast.stmt], level: int) -> bool:
        """Follow the statements; True where the way ends in a `continue`."""
        for statement in body:
            if isinstance(statement, ast.Continue):
                if self.region.end != len(self.region.loop.body):
                    raise NotProven("statements behind it are not looked at")
                return True
            if isinstance(statement, ast.If):
                if self._choose(statement, level):
                    return True
            elif not self._sets_flag(statement):
                self._run(statement, level)
        return False

    def _choose(self, statement: ast.If, level: int) -> bool:
        inside = [
            any(node is self.region.drawn.compared for each in block for node in ast.walk(each))
            for block in (statement.body, statement.orelse)
        ]
        truth = self._truth(statement.test)
        if truth is None and any(inside):
            truth = self.region.assume(statement.test, inside[0])
        if truth is None:
            self._run(statement, level)
            return False
        return self._follow(statement.body if truth else statement.orelse, level + 1)

    def _sets_flag(self, statement: ast.stmt) -> bool:
        """`skip = self.training and drawn < self.layerdrop`, `skip = False`: a name that is only tested."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        own = is_within(self.region.drawn.compared, value)
        if not isinstance(target, ast.Name) or not (own or isinstance(getattr(value, "value", None), bool)):
            return False
        if not only_tested(self.region.here, target.id):
            if own:
                raise NotProven(f"`{target.id}` is more than tested")
            return False
        truth = self._truth(value)
        if truth is None:
            return False
        self.flags[target.id] = truth
        return True

    def _run(self, statement: ast.stmt, level: int) -> None:
        if isinstance(statement, ast.Pass):
            return
        if any(isinstance(node, _LEAVES) for node in walk(statement)):
            raise NotProven(f"`{short(statement)}` leaves the loop")
        if is_within(self.region.drawn.compared, statement):
            raise NotProven("the number is compared in the midst of something else")
        if level > 1:
            raise NotProven("the layer is called several levels below the test")
        (self.rest if self._compared else self.first).append(Written(statement, level))

    def _truth(self, node: ast.expr) -> bool | None:
        if node is self.region.drawn.compared:
            self._compared = True
            return self.outcome
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name) and node.id in self.flags:
            return self.flags[node.id]
        if is_not(node) and not is_guard(self.region.here, node):
            truth = self._truth(node.operand)
            return None if truth is None else not truth
        if isinstance(node, ast.BoolOp):
            return self._of_operands(node)
        return self.region.assumed[ast.dump(node)][1] if ast.dump(node) in self.region.assumed else None

    def _of_operands(self, node: ast.BoolOp) -> bool | None:
        neutral = isinstance(node.op, ast.And)
        operands = [each for each in node.values if not is_guard(self.region.here, each)]
        truths = [self._truth(each) for each in operands]
        if all(truth is None for truth in truths):
            return None
        truths = [
            self.region.assume(each, neutral) if truth is None else truth
            for each, truth in zip(operands, truths, strict=True)
        ]
        return all(truths) if neutral else any(truths)


def _changes_more(node: ast.AST) -> bool:
    """True for `kept.append(x)`, `self.ran = n`, `x += layer(x)`, `x.add_(layer(x))`: a select does not undo them."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return not isinstance(node.ctx, ast.Load) or (isinstance(node, ast.Attribute) and is_method_in_place(node.attr))
    return isinstance(node, (ast.Expr, ast.AugAssign, ast.Delete))


def _is_constant(statement: ast.Assign) -> bool:
    """`outputs = (None, None)`."""
    return all(isinstance(each, ast.Name) for each in statement.targets) and all(
        isinstance(part, (ast.Constant, ast.Tuple, ast.expr_context)) for part in ast.walk(statement.value)
    )


def _is_flag(statement: ast.stmt) -> bool:
    """`to_drop = False`."""
    return isinstance(statement, ast.Assign) and isinstance(getattr(statement.value, "value", None), bool)


def bound_before_read(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that the statements bind, and do not read before."""
    return {name for each in statements for name in names_bound(each)} - _exposed(statements)


def _exposed(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that the statements read before they certainly bind them."""
    bound: set[str] = set()
    found: set[str] = set()
    for statement in statements:
        read = {part.id for part in walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):
            read |= names_bound(statement)
        found |= read - bound
        if isinstance(statement, ast.Assign):
            bound |= names_bound(statement)
    return found
