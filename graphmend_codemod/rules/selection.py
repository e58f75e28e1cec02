"""Branches that only choose between tensors, turned into one `torch.where` for each name.

One path where the source proves that eager cannot tell; otherwise the select stands under
`if torch.compiler.is_compiling()` with the facts that it needs, and the original text stays behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphmend_codemod.analysis import purity
from graphmend_codemod.analysis.evaluate import Env
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.narrowing import evidence, narrow, rename_dtype
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.values import UNKNOWN, Kind, Value
from graphmend_codemod.findings import Edit, Original, Replacement
from graphmend_codemod.rules.conditions import Condition, split
from graphmend_codemod.rules.logcalls import LOG_METHODS
from graphmend_codemod.rules.site import Site


class NotSelectable(Exception):
    """Why a branch cannot become a select; the text is the condition that failed."""


class Assignment(NamedTuple):
    """`name = value` in a branch."""

    statement: ast.stmt
    name: str
    value: ast.expr


class Arm(NamedTuple):
    """One branch: its assignments, and what holds where it begins. `condition` is None for `else`."""

    condition: Condition | None
    assignments: tuple[Assignment, ...]
    env: Env


class Facts(NamedTuple):
    """What a select needs to mean the same: trace-time conditions, and whether eager can be left to it as well."""

    conditions: tuple[str, ...] = ()
    one_path: bool = True


def assignments(body: Sequence[ast.stmt]) -> tuple[Assignment, ...]:
    """The assignments that make up a branch."""
    found = []
    for statement in body:
        if isinstance(statement, ast.Pass):
            continue
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            found.append(Assignment(statement, statement.targets[0].id, statement.value))
        else:
            raise NotSelectable(_why_no_assignment(statement))
    return tuple(found)


def _why_no_assignment(statement: ast.stmt) -> str:
    text = purity.short(statement)
    if isinstance(statement, (ast.AugAssign, ast.Delete)):
        return f"`{text}` writes in place"
    if isinstance(statement, ast.Assign):
        return f"`{text}` writes something else than a local name"
    if isinstance(statement, ast.Expr):
        return f"`{text}` may have effects"
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
        return f"`{text}` leaves the branch early"
    kind = type(statement).__name__.lower()
    return f"the branch holds a nested `{kind}` statement"


def arms(site: Site, node: ast.If) -> tuple[Arm, ...]:
    """The branches of `node` and of the `elif`s after it; the last one is the `else`, empty if there is none."""
    found: list[Arm] = []
    current, where = node, site
    while True:
        condition = split(where, current.test)
        if condition is None:
            raise NotSelectable(f"`{site.text(current.test)}` is no test on a tensor that is known as one")
        if condition.several is not None:
            raise NotSelectable(f"`{condition.several}` may hold more than one element")
        found.append(Arm(condition, assignments(current.body), _env_of(where, current.body)))
        inner = current.orelse
        following = site.at(inner[0]) if len(inner) == 1 else None
        if following is None or not isinstance(inner[0], ast.If):
            found.append(Arm(None, assignments(inner), _env_of(where, inner)))
            return _under_static(site, found)
        current, where = inner[0], following


def _under_static(site: Site, found: list[Arm]) -> tuple[Arm, ...]:
    """All branches where the static part of the first test holds, as it does wherever the select runs."""
    first = found[0].condition
    for arm in found:
        if first is not None:
            for key in evidence(site.evaluator, first.tensors[0], arm.env):
                arm.env[key] = found[0].env.get(key, UNKNOWN)
        for operand in first.static if first else ():
            narrow(site.evaluator, operand, True, arm.env)
    return tuple(found)


def _env_of(site: Site, body: Sequence[ast.stmt]) -> Env:
    inner = site.at(body[0]) if body else None
    return dict((inner or site).place.env)


@dataclass(eq=False, repr=False)
class Selection:
    """A chain of branches on tensors that assign local names; `names` are those that are read later, in order."""

    site: Site
    node: ast.If
    arms: tuple[Arm, ...]
    names: tuple[str, ...]

    @property
    def temporaries(self) -> list[Assignment]:
        """Assignments that only the branches themselves read."""
        return [item for arm in self.arms for item in arm.assignments if item.name not in self.names]

    def check_form(self) -> None:
        """NotSelectable when names depend on each other in a way that one select a name cannot express."""
        names = self.names
        if not names:
            raise NotSelectable("nothing that the branches assign is read afterwards")
        for arm in self.arms:
            seen: set[str] = set()
            for position, item in enumerate(arm.assignments):
                if item.name in seen:
                    raise NotSelectable(f"`{item.name}` is assigned twice in one branch")
                seen.add(item.name)
                rest = [later.statement for later in arm.assignments[position + 1 :]]
                if item.name in names and reads_before_writing(rest, item.name):
                    raise NotSelectable(f"later statements of the branch read `{item.name}`")
        temporaries = self.temporaries
        counts = [item.name for item in temporaries]
        for item in temporaries:
            if counts.count(item.name) > 1:
                raise NotSelectable(f"`{item.name}` is assigned in several branches")
            if any(self._reads(arm, item) for arm in self.arms if item not in arm.assignments):
                raise NotSelectable(f"`{item.name}` is used in several branches")

    def _reads(self, arm: Arm, item: Assignment) -> bool:
        return reads_before_writing([other.statement for other in arm.assignments], item.name)

    def value_of(self, arm: Arm, name: str) -> ast.expr:
        """What `name` is after `arm`."""
        return next((item.value for item in arm.assignments if item.name == name), ast.Name(name, ast.Load()))

    def judge(self) -> Facts:
        """The facts under which the select means the same; NotSelectable if there are none."""
        facts = _Judge(self, frozenset())
        needs = facts.run()
        if needs:
            facts = _Judge(self, needs)
            if facts.run() - needs:
                raise NotSelectable("it needs to know the dtype of a value that has no name")
        return facts.result()


def expression_selection(site: Site, node: ast.IfExp, condition: Condition) -> Selection:
    """The selection that a conditional expression is: two branches that give one value, which has no name."""
    name, statement = "the value", site.place.statement
    arms = [
        Arm(condition, (Assignment(statement, name, node.body),), dict(site.place.env)),
        Arm(None, (Assignment(statement, name, node.orelse),), dict(site.place.env)),
    ]
    for key in evidence(site.evaluator, condition.tensors[0], site.place.env):
        value = site.evaluator.names.tensor()
        for arm in arms:
            arm.env[key] = value
    fake = ast.If(test=node.test, body=[statement], orelse=[])
    return Selection(site, fake, _under_static(site, arms), (name,))


class _Judge:
    """Judges all branches, under the assumption that some tensors are floating."""

    def __init__(self, selection: Selection, floating: frozenset[str]) -> None:
        self.selection, self.site, self.floating = selection, selection.site, floating
        self.verdict = purity.FREE
        self.aliasing = False
        self.other_leaves = False
        self.kept: list[ast.expr] = []
        self.relations: list[str] = []
        self.mismatch: str | None = None

    def run(self) -> frozenset[str]:
        """Judge; returns the tensors whose dtype has to be floating for the answer to hold."""
        results: dict[str, list[tuple[ast.expr, Value]]] = {name: [] for name in self.selection.names}
        for arm in self.selection.arms:
            if arm.condition is not None:
                self.verdict = self.verdict & arm.condition.verdict
                if arm.condition is not self.selection.arms[0].condition:
                    for tensor in arm.condition.tensors:
                        self.verdict = self.verdict & self.site.judge(tensor)._replace(finite=True)
            env = self._assume(arm.env)
            for item in arm.assignments:
                self.verdict = self.verdict & purity.judge(self.site.evaluator, item.value, env)
                value = self.site.evaluator.value(item.value, env)
                env[item.name] = value._replace(roots=self.site.roots(item.value, env))
            for name, branches in results.items():
                held = env.get(name)
                if held is None or not held.is_tensor:
                    raise NotSelectable(self._why_no_tensor(name, held))
                branches.append((self.selection.value_of(arm, name), held))
        if self.verdict.impure:
            raise NotSelectable(self.verdict.impure)
        needs = self.verdict.needs_floating
        for name, found in results.items():
            needs |= self._compare(name, found)
        if self.mismatch and not needs - self.floating:
            raise NotSelectable(self.mismatch)
        return frozenset(need for need in needs if need not in self.floating)

    def _assume(self, env: Env) -> Env:
        env = dict(env)
        for text in self.floating:
            value = self.site.evaluator.value(ast.parse(text, mode="eval").body, env)
            if value.kind is not Kind.TENSOR or value.dtype is None:
                raise NotSelectable(f"the dtype of `{text}` is not known")
            rename_dtype(env, value.dtype, f"float:{value.dtype}")
        return env

    def _why_no_tensor(self, name: str, value: Value | None) -> str:
        if value is not None and value.is_python:
            return f"`{name}` is a Python value in one branch, and a select would make it a tensor"
        if value is not None and value.optional:
            return f"`{name}` may be None"
        return f"`{name}` is not known to be a tensor in each branch"

    def _compare(self, name: str, branches: list[tuple[ast.expr, Value]]) -> frozenset[str]:
        needs: frozenset[str] = frozenset()
        (first_node, first), *others = branches
        for node, value in others:
            for what in ("dtype", "shape"):
                if getattr(first, what) == getattr(value, what):
                    continue
                self.mismatch = f"`{name}` may have another {what} in each branch"
                if what == "dtype":
                    needs |= self._names_in(first_node) | self._names_in(node)
                else:
                    raise NotSelectable(self.mismatch)
        reached = [self.site.roots_of(value) for _, value in branches]
        if any(found != reached[0] for found in reached):
            self.other_leaves = True
        kept = [node for node, value in branches if isinstance(node, ast.Name) or not self.site.is_fresh(value)]
        if name in _shown_names(self.site):
            # A tensor's text names the function that made it: grad_fn=<WhereBackward0>.
            self.aliasing = True
        # Under no_grad a select would cut the graph of a tensor that was made outside.
        self.kept += kept
        if kept and any(isinstance(parent, (ast.With, ast.AsyncWith)) for parent in self.site.place.parents):
            self.aliasing = True
        if any(not (isinstance(node, ast.Name) and self.site.sole_owner(node.id)) for node in kept):
            self.aliasing = True
        return needs

    def _names_in(self, node: ast.expr) -> frozenset[str]:
        found = set()
        for part in walk_in_layers(node):
            if isinstance(part, ast.Name):
                value = self.site.place.env.get(part.id)
                if value is not None and value.is_tensor and not value.is_floating:
                    found.add(part.id)
        return frozenset(found)

    def result(self) -> Facts:
        """The facts, in the order in which a reader wants them."""
        site, first = self.site, self.selection.arms[0].condition
        conditions = [f"{text}.is_floating_point()" for text in sorted(self.floating)]
        for arm in self.selection.arms:
            conditions.extend(arm.condition.facts if arm.condition else ())
        grads = any(value.grad for value in site.place.env.values() if value.is_tensor) and not site.no_grad
        if grads and (self.other_leaves or not self.verdict.finite):
            conditions.append(f"not {site.torch}.is_grad_enabled()")
        conditions.extend(site.keeps_graph(self.kept))
        proven = not conditions and not self.verdict.raises and not self.aliasing and not self.other_leaves
        chained = len(self.selection.arms) > 2 or bool(self.selection.arms[-1].assignments)
        static = first.static if first else ()
        return Facts(tuple(conditions), proven and not (static and chained) and not site.flow.splits)


def _shown_names(site: Site) -> frozenset[str]:
    """Names that the function puts into text as they are: f-strings, `print`, loggers, `str`, `repr`, `format`."""

    def look() -> frozenset[str]:
        found: set[str] = set()
        for node in walk(site.evaluator.scope.node):
            shown: list[ast.expr] = []
            if isinstance(node, ast.FormattedValue):
                shown = [node.value]
            elif isinstance(node, ast.Call) and _shows(node):
                shown = [*node.args, *(word.value for word in node.keywords)]
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                shown = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            found.update(part.id for part in shown if isinstance(part, ast.Name))
        return frozenset(found)

    return site.remembered("shown names", site.evaluator.scope.node, look, anywhere=True)


def _shows(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in LOG_METHODS | {"print", "str", "repr", "format"}


def select_edit(selection: Selection, facts: Facts) -> Edit:
    """The edit that replaces the branches, or puts the select in front of them."""
    site, node = selection.site, selection.node
    first = selection.arms[0].condition
    assert first is not None
    static = [site.operand_of_and(operand) for operand in first.static]
    if facts.one_path and not site.is_elif(node):
        kept = tuple(item.statement for item in selection.temporaries)
        depth = 1 if static else 0
        lines = _lines(selection, depth, [f"{comment}" for comment in site.comments(node, kept)])
        header = (f"if {' and '.join(static)}:\n    ",) if static else ()
        return Edit((Replacement(site.span(node), (*header, *lines)),), imports=site.imports)
    return site.in_front(node, [*static, *facts.conditions], _lines(selection, 1, []))


def _lines(selection: Selection, depth: int, comments: list[str]) -> list[str | Original]:
    site = selection.site
    newline = "\n" + "    " * depth
    parts: list[str | Original] = []
    for comment in comments:
        parts += [comment, newline]
    for item in selection.temporaries:
        parts += [site.original(item.statement, depth - 1), newline]
    chain = [arm.condition for arm in selection.arms if arm.condition is not None]
    texts = [condition.text for condition in chain]
    names = selection.names
    if len(names) > 1:
        for position, text in enumerate(texts):
            name = site.free_name("condition" if len(texts) == 1 else f"condition_{position + 1}")
            parts += [f"{name} = {text}", newline]
            texts[position] = name
    for name in names:
        values = [_text(site, selection.value_of(arm, name)) for arm in selection.arms]
        parts += [where(site, f"{name} = ", texts, values, depth), newline]
    return parts[:-1]


def _text(site: Site, node: ast.expr) -> str:
    return site.text(node) if hasattr(node, "lineno") else ast.unparse(node)


def where(site: Site, before: str, conditions: Sequence[str], values: Sequence[str], depth: int) -> str:
    """`before` and the nested `torch.where` of `conditions` over `values`, one value more than conditions."""
    text = values[-1]
    for condition, value in zip(reversed(conditions[1:]), reversed(values[1:-1]), strict=True):
        text = f"{site.torch}.where({condition}, {value}, {text})"
    return site.call(f"{before}{site.torch}.where(", [conditions[0], values[0], text], deeper=depth)


def selection_of(site: Site, node: ast.If) -> Selection:
    """The selection that `node` is; NotSelectable with the reason if it is none."""
    branches = arms(site, node)
    assigned = dict.fromkeys(item.name for arm in branches for item in arm.assignments)
    selection = Selection(site, node, branches, tuple(name for name in assigned if site.live_after(name)))
    selection.check_form()
    return selection
