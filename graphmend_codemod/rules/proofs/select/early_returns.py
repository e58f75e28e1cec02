"""Early returns on tensors, and the statements behind them up to the last `return`, as one select.

What is returned is judged as an expression of what names hold before the first branch; what is written are the
statements themselves, in their order. So each has to be an assignment that the result depends on.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.liveness import is_seen_elsewhere
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.logging.log_guard import without_messages
from graphmend_codemod.rules.proofs.select.selection import Assignment, Branch, Selection, under_static
from graphmend_codemod.rules.proofs.substitution import exchanged

RESULT = "the result"
_MOST_STATEMENTS = 16
_LARGEST = 400
_NOT_PLAIN = "the code after the branch is not a plain `return`"
_MADE = "graphmend_made"
"""Where a value keeps the number of the statement that computes it: copies keep it, too."""


class Exit(NamedTuple):
    """One `return`: under a condition, which is None for the last one, and behind statements of its own branch.

    `late` is true where other statements run before it. `value` is computed from what names hold before all of them.
    """

    condition: Condition | None
    before: tuple[ast.stmt, ...]
    returned: ast.expr
    value: ast.expr
    statement: ast.stmt
    env: Env
    late: bool

    @property
    def plain(self) -> bool:
        """True where no statement runs between the first branch and this `return`."""
        return not self.before and not self.late


class EarlyReturns:
    """What runs from `node` to the last `return`: `steps` are exits and assignments in their order."""

    def __init__(self, site: Site, node: ast.If) -> None:
        self.site, self.node = site, node
        self.steps: list[Exit | ast.stmt] = []
        self._values: dict[str, ast.expr] = {}
        self._made = 0
        self._env: Env | None = None
        self._read([node, *site.place.below(ast.If)])
        self._demand_used()

    @property
    def exits(self) -> list[Exit]:
        """All returns; the last one has no condition."""
        return [each for each in self.steps if isinstance(each, Exit)]

    @property
    def statements(self) -> list[ast.stmt]:
        """The assignments that run whichever branch is taken."""
        return [each for each in self.steps if not isinstance(each, Exit)]

    @property
    def has_statements(self) -> bool:
        """True where assignments run before one of the returns."""
        return self._made > 0

    @property
    def assigned(self) -> set[str]:
        """The names that these bind."""
        return {name for each in self.statements for name, _ in bound_by(each)}

    def selection(self) -> Selection:
        """The selection between all that may be returned."""
        arms = [
            Branch(each.condition, (Assignment(each.statement, RESULT, each.value),), each.env) for each in self.exits
        ]
        return Selection(self.site, self.node, under_static(self.site, arms), (RESULT,))

    def _read(self, rest: list[ast.stmt]) -> None:
        while rest:
            current, *rest = rest
            where = self.site if current is self.node else self.site.at(current)
            if where is None:
                raise NotProven("the code after the branch is not reached by torch.compile")
            if isinstance(current, ast.Return):
                self._leave(where, None, [current])
                return
            if isinstance(current, ast.If):
                condition = split(where, current.test)
                if condition is None:
                    raise NotProven(_NOT_PLAIN)
                if condition.static and self.exits:
                    raise NotProven("a Python condition selects between later branches")
                self._leave(where, condition, without_messages(where, current.body))
                rest = [*current.orelse, *rest]
            else:
                self._assign(where, current)
        raise NotProven("the function continues after the branch without a `return`")

    def _assign(self, where: Site, statement: ast.stmt) -> None:
        self._env = dict(where.place.env) if self._env is None else self._env
        self._values |= self._bound(statement, self._values)
        self.steps.append(statement)

    def _bound(self, statement: ast.stmt, values: dict[str, ast.expr]) -> dict[str, ast.expr]:
        """What a statement binds, computed from what names hold before all statements."""
        self._made += 1
        if self._made > _MOST_STATEMENTS or not (found := bound_by(statement)):
            raise NotProven(_runs_between(statement))
        made: dict[str, ast.expr] = {}
        for name, value in found:
            if is_seen_elsewhere(self.site.evaluator.scope.node.body, name):
                raise NotProven(f"`{name}`, which the code after the branch assigns, may be read by another function")
            made[name] = _in_place_of(value, values)
            setattr(made[name], _MADE, {self._made, *getattr(made[name], _MADE, ())})
        return made

    def _leave(self, where: Site, condition: Condition | None, body: Sequence[ast.stmt]) -> None:
        if not body or (len(body) > 1 and not all(bound_by(each) for each in body[:-1])):
            raise NotProven(_NOT_PLAIN)
        *before, end = body
        returned = value_returned(end)
        inner = where if condition is None else where.at(body[0]) or where
        env = dict(inner.place.env if self._env is None else self._env)
        late, values = self._env is not None, dict(self._values)
        for each in before:
            values |= self._bound(each, values)
        if late and condition is not None:
            tensors = tuple(_in_place_of(each, self._values) for each in condition.tensors)
            condition = condition._replace(tensors=tensors)
        value = _in_place_of(returned, values) if values else returned
        self.steps.append(Exit(condition, tuple(before), returned, value, end, env, late))

    def _demand_used(self) -> None:
        """NotProven where a statement computes what nothing depends on: nobody would judge that."""
        wholes = [(each.value, *(each.condition.tensors if each.condition else ())) for each in self.exits]
        parts = [*islice((part for whole in wholes for each in whole for part in ast.walk(each)), _LARGEST + 1)]
        if self._made and len(parts) > _LARGEST:
            raise NotProven("what the code after the branch computes is too much to compute in any case")
        used = {number for part in parts for number in getattr(part, _MADE, ())}
        if len(used) < self._made:
            raise NotProven("the code after the branch assigns a variable that nothing reads")


def bound_by(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that an assignment binds, with the value of each; none for other statements.

    `a, b = x.max(dim=1)` binds `a` to the first element.
    """
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    value = getattr(statement, "value", None)
    if len(targets) != 1 or value is None:
        return []
    if isinstance(targets[0], ast.Name):
        return [(targets[0].id, value)]
    names = targets[0].elts if isinstance(targets[0], ast.Tuple) else []
    if not names or not all(isinstance(each, ast.Name) for each in names):
        return []
    if isinstance(value, ast.Tuple):
        values = value.elts if len(value.elts) == len(names) else []
    else:
        values = [_element(value, number) for number in range(len(names))] if isinstance(value, ast.Call) else []
    return [(each.id, one) for each, one in zip(names, values, strict=False)]  # type: ignore[attr-defined]


def _element(value: ast.expr, number: int) -> ast.expr:
    return ast.copy_location(ast.Subscript(value, ast.Constant(number), ast.Load()), value)


def value_returned(statement: ast.stmt) -> ast.expr:
    """What a statement returns; NotProven where it is no `return` of a value."""
    if isinstance(statement, ast.Return) and statement.value is not None:
        return statement.value
    if isinstance(statement, ast.Return):
        raise NotProven(
            "one branch returns None; where the other sets up buffers once, manually call it before compiling and test "
            "a Python bool that is kept beside them"
        )
    raise NotProven(_NOT_PLAIN)


def _runs_between(node: ast.AST) -> str:
    text = f"`{speculation.short(node)}` runs between the branch and the last `return`"
    return f"{text}; manually compute both results and select with `torch.where`"


def _in_place_of(node: ast.expr, values: dict[str, ast.expr]) -> ast.expr:
    """A copy of `node` that is computed from what names hold before they are assigned."""

    def value(part: ast.expr) -> ast.expr | None:
        if isinstance(part, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)):
            # A scope of its own may bind the names anew.
            raise NotProven(f"`{speculation.short(part)}` runs between the branch and the last `return`")
        return values.get(part.id) if isinstance(part, ast.Name) else None

    return exchanged(node, value)
