"""Branches that only choose between tensors: what they assign, and whether one `torch.where` a name can say the same.

`select_proof` judges such a selection, `select_text` writes it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.interpreter import Env
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.narrowing import evidence, narrow
from graphmend_codemod.analysis.patterns import all_names
from graphmend_codemod.analysis.values import UNKNOWN
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.logging.log_guard import without_messages

VALUE = "the value"
"""Stands for the name that the value of a conditional expression does not have."""


class Assignment(NamedTuple):
    """`name = value` in a branch."""

    statement: ast.stmt
    name: str
    value: ast.expr


class Branch(NamedTuple):
    """One branch: its assignments, and what holds where it begins. `condition` is None for `else`."""

    condition: Condition | None
    assignments: tuple[Assignment, ...]
    env: Env


def assignments(body: Sequence[ast.stmt]) -> tuple[Assignment, ...]:
    """The assignments that make up a branch."""
    found = []
    for statement in body:
        if isinstance(statement, ast.Pass):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        value = getattr(statement, "value", None)
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or value is None:
            raise NotProven(_why_no_assignment(statement))
        found.append(Assignment(statement, targets[0].id, value))
    return tuple(found)


def _why_no_assignment(statement: ast.stmt) -> str:
    text = speculation.short(statement)
    if isinstance(statement, (ast.AugAssign, ast.Delete)):
        return f"`{text}` writes in place; assign a new tensor instead"
    if isinstance(statement, ast.Assign):
        return f"`{text}` writes to an attribute or element; select the new value with `torch.where` and assign it once"
    if isinstance(statement, ast.Expr):
        return f"`{text}` may have side effects; if it may always run, move it before the branch"
    if isinstance(statement, ast.Break):
        return f"`{text}` ends the loop where the data says; manually run all steps and select with `torch.where`"
    if isinstance(statement, ast.Continue):
        return f"`{text}` leaves the rest of a step out; manually compute it and select with `torch.where`"
    if isinstance(statement, (ast.Return, ast.Raise)):
        return f"`{text}` leaves the branch early; assign a variable and return once, after the branch"
    if not hasattr(statement, "body"):
        return f"`{text}` is not a plain assignment"
    nested = f"the branch contains a nested `{type(statement).__name__.lower()}` statement"
    return f"{nested}; manually compute both results and select with `torch.where`"


def _assigned(site: Site, body: Sequence[ast.stmt]) -> tuple[Assignment, ...]:
    return assignments(without_messages(site, body))


def arms(
    site: Site, node: ast.If, read: Callable[[Site, Sequence[ast.stmt]], tuple[Assignment, ...]] = _assigned
) -> tuple[Branch, ...]:
    """The branches of `node` and of the `elif`s after it; the last one is the `else`, empty if there is none.

    `read` says what a branch assigns.
    """
    found: list[Branch] = []
    current, where = node, site
    while True:
        condition = split(where, current.test)
        if condition is None:
            raise NotProven(
                f"`{site.text(current.test)}` does not test a value that graphmend can infer to be a Tensor"
            )
        if condition.static and found:
            # The header asks what stands beside the first test alone.
            raise NotProven(
                f"`{site.text(condition.static[0])}` and a tensor decide a later branch together; "
                f"nest them: `if {site.text(condition.static[0])}:` around the tensor test"
            )
        found.append(Branch(condition, read(where, current.body), _env_of(where, current.body)))
        inner = current.orelse
        following = site.at(inner[0]) if len(inner) == 1 else None
        if following is None or not isinstance(inner[0], ast.If):
            found.append(Branch(None, read(where, inner), _env_of(where, inner)))
            return under_static(site, found)
        current, where = inner[0], following


def under_static(site: Site, selection: list[Branch]) -> tuple[Branch, ...]:
    """All branches where the static part of the first test holds, as it does wherever the select runs."""
    first = selection[0].condition
    for arm in selection:
        if first is not None:
            for key in evidence(site.evaluator, first.tensors[0], site.place.env):
                arm.env[key] = selection[0].env.get(key, UNKNOWN)
        for operand in first.static if first else ():
            narrow(site.evaluator, operand, True, arm.env)
    return tuple(selection)


def _env_of(site: Site, body: Sequence[ast.stmt]) -> Env:
    inner = site.at(body[0]) if body else None
    return dict((inner or site).place.env)


@dataclass(eq=False, repr=False)
class Selection:
    """A chain of branches on tensors that assign local names; `names` are those that are read later, in order."""

    site: Site
    node: ast.If
    arms: tuple[Branch, ...]
    names: tuple[str, ...]

    @property
    def temporaries(self) -> list[Assignment]:
        """Assignments that only the branches themselves read."""
        return [item for arm in self.arms for item in arm.assignments if item.name not in self.names]

    def check_form(self) -> None:
        """NotProven when names depend on each other in a way that one select a name cannot express."""
        names = self.names
        if not names:
            raise NotProven("no variable assigned in the branches is read afterwards")
        for arm in self.arms:
            seen: set[str] = set()
            for position, item in enumerate(arm.assignments):
                if item.name in seen:
                    raise NotProven(f"`{item.name}` is assigned twice in one branch")
                seen.add(item.name)
                rest = [later.statement for later in arm.assignments[position + 1 :]]
                if item.name in names and reads_before_writing(rest, item.name):
                    raise NotProven(f"later statements of the branch read `{item.name}`")
        self.names = self._in_order()
        temporaries = self.temporaries
        counts = [item.name for item in temporaries]
        for item in temporaries:
            if counts.count(item.name) > 1:
                raise NotProven(f"`{item.name}` is assigned in several branches")
            if any(
                reads_before_writing([other.statement for other in arm.assignments], item.name)
                for arm in self.arms
                if item not in arm.assignments
            ):
                raise NotProven(f"`{item.name}` is used in several branches")

    def _in_order(self) -> tuple[str, ...]:
        """The names in an order in which each is selected above a name that a branch binds after it read it.

        NotProven where there is none: `a = b` and then `b = 1` in one branch, `b = a` and then `a = 1` in the other.
        """
        above: dict[str, set[str]] = {name: set() for name in self.names}
        for arm in self.arms:
            for position, item in enumerate(arm.assignments):
                later = {each.name for each in arm.assignments[position + 1 :]} & above.keys()
                for name in later & all_names(item.value) if item.name in above else ():
                    above[name].add(item.name)
        found: list[str] = []
        while len(found) < len(above):
            ready = next((name for name in self.names if name not in found and above[name] <= {*found}), None)
            if ready is None:
                left = " and ".join(f"`{name}`" for name in self.names if name not in found)
                raise NotProven(f"the branches compute {left} of each other")
            found.append(ready)
        return tuple(found)

    @property
    def tests_again(self) -> bool:
        """True where a test reads what a branch binds for itself: then the tests come first."""
        tests = [part for arm in self.arms if arm.condition for part in arm.condition.tensors]
        tested = {name for test in tests for name in all_names(test)}
        return not tested.isdisjoint(item.name for item in self.temporaries)

    def value_of(self, arm: Branch, name: str) -> ast.expr:
        """What `name` is after `arm`."""
        return next((item.value for item in arm.assignments if item.name == name), ast.Name(name, ast.Load()))


def expression_selection(site: Site, node: ast.IfExp, condition: Condition) -> Selection:
    """The selection that a conditional expression is: two branches that give one value, which has no name."""
    name, statement = VALUE, site.place.statement
    arms = [
        Branch(condition, (Assignment(statement, name, node.body),), dict(site.place.env)),
        Branch(None, (Assignment(statement, name, node.orelse),), dict(site.place.env)),
    ]
    for key in evidence(site.evaluator, condition.tensors[0], site.place.env):
        known = site.place.env.get(key)
        value = known._replace(hint=False) if known and known.is_tensor else site.evaluator.names.tensor()
        for arm in arms:
            arm.env[key] = value
    fake = ast.If(test=node.test, body=[statement], orelse=[])
    return Selection(site, fake, under_static(site, arms), (name,))


def selection_of(site: Site, node: ast.If) -> Selection:
    """The selection that `node` is; NotProven with the reason if it is none."""
    branches = arms(site, node)
    assigned = dict.fromkeys(item.name for arm in branches for item in arm.assignments)
    selection = Selection(site, node, branches, tuple(name for name in assigned if site.live_after(name)))
    selection.check_form()
    return selection
