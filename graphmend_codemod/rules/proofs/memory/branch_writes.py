"""What a branch writes to attributes of its instance, and what it computes before, in terms of what was there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.aliasing import RANDOM
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.patterns import elements_of, is_attribute, is_literal, is_name, is_not, last_name
from graphmend_codemod.analysis.scope import of_kind, parameter_names, parameters, walk, walk_in_layers
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.memory.computed_anyway import demand_no_effects, written_later


def self_name(site: Site) -> str | None:
    """The name by which a method calls its instance; None where it is not its first parameter."""
    arguments = [*site.evaluator.scope.node.args.posonlyargs, *site.evaluator.scope.node.args.args]
    return arguments[0].arg if arguments and arguments[0].arg == (site.evaluator.scope.self_name or "self") else None


def own_attribute(site: Site, node: ast.expr) -> str | None:
    """`a` for `self.a`; None for any other."""
    if is_attribute(node, self_name(site)):
        return node.attr
    return None


class AttributeWrite(NamedTuple):
    """One attribute's new value: as an assignment, or as `register_buffer` with the keyword arguments `rest`.

    `site` is the place of the statement that writes it.
    """

    value: str
    node: ast.expr
    registers: bool
    site: Site
    rest: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class BranchWrites:
    """What one branch computes for itself and what it writes."""

    lines: list[str] = field(default_factory=list)
    writes: dict[str, AttributeWrite] = field(default_factory=dict)
    stands_for: dict[str, str] = field(default_factory=dict)


def writes_of(site: Site, body: Sequence[ast.stmt]) -> BranchWrites:
    """What a branch does; NotProven for anything but writes to attributes of `self` and what they are made of."""
    branch = BranchWrites()
    for statement in body:
        inner = site.reached(statement)
        _statement(inner, statement, branch)
    return branch


class Arm(NamedTuple):
    """One of the ways through a branch: the header that chooses it, empty for the only one, and what has to be known
    for the header to be asked."""

    head: str
    writes: BranchWrites
    known: tuple[str, ...] = ()


def arms_of(site: Site, body: Sequence[ast.stmt]) -> list[Arm]:
    """The arms of a branch that is nothing but `if n == 1: ... else: ...`; the branch itself where it is anything else.

    NotProven unless Python values choose among them, which may be asked before it is known whether the branch is taken.
    """
    choice = body[0] if len(body) == 1 and isinstance(body[0], ast.If) and body[0].orelse else None
    if choice is None or reads_tensor(site, choice.test):
        return [Arm("", writes_of(site, body))]
    number = _compared_with_number(site, choice.test)
    hazards, test = site.judge(choice.test), site.text(choice.test)
    raises = hazards.unconditional.raises if number is None else None
    if (why := hazards.impure or raises or acts(site, choice.test)) is not None:
        raise NotProven(f"`{test}` is asked in one branch alone: {why}")
    known = () if number is None else (f"isinstance({number}, (int, float))",)
    rest = [each._replace(head=f"el{each.head}" if each.head else "else:") for each in arms_of(site, choice.orelse)]
    return [Arm(f"if {test}:", writes_of(site, choice.body), known), *rest]


def _compared_with_number(site: Site, test: ast.expr) -> str | None:
    """`self.n` for `self.n == -1`, where nothing says what it is."""
    if not isinstance(test, ast.Compare) or site.value(test.left).kind is not ValueKind.UNKNOWN:
        return None
    plain = all(number_of(site.evaluator, each) is not None for each in test.comparators)
    return site.text(test.left) if plain and own_attribute(site, test.left) is not None else None


def _statement(site: Site, statement: ast.stmt, branch: BranchWrites) -> None:
    cached = cached_value(site, statement, self_name(site))
    if cached is not None:
        _compute(site, cached, branch)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        _assignment(site, statement, branch)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _registration(site, statement.value, branch)
    else:
        raise NotProven(f"`{speculation.short(statement)}` does more than assign an attribute")


def _compute(site: Site, node: ast.Assign, branch: BranchWrites) -> None:
    """Bind locals where the branch would have filled its cache."""
    changes = why_it_may_change(site, node.value, self_name(site))
    if changes is not None:
        raise NotProven(changes)
    read = demand_no_effects(site, node.value, self_name(site))
    read |= {name for part in walk(node.value) if isinstance(part, ast.expr) and (name := _read(site, part))}
    for name in sorted(read):
        if (later := written_later(site, name)) is not None:
            raise NotProven(f"{later}, and the branch would keep the value of the first call")
    target = node.targets[0]
    names = []
    for element in elements_of(target):
        attribute = own_attribute(site, element)
        if attribute is not None:
            local = site.free_name(attribute)
            reader = why_it_is_needed(site, attribute, node)
            if reader is not None:
                raise NotProven(reader)
            branch.stands_for[attribute] = local
            names.append(local)
        elif isinstance(element, ast.Name):
            names.append(element.id)
        else:
            raise NotProven(f"`{speculation.short(element)}` is also written")
    head, *given = arguments_of(site, node.value)
    before = f"{', '.join(names)} = {head}"
    branch.lines.append(site.call(before, given, deeper=1, after=")" if head.endswith("(") else ""))


def _read(site: Site, node: ast.expr) -> str | None:
    """`a` for `self.a`, unless that is a method."""
    name, facts = own_attribute(site, node), site.evaluator.scope.class_facts
    return None if facts is not None and name in facts.methods else name


def arguments_of(site: Site, node: ast.expr) -> tuple[str, ...]:
    """A call's head with its opening bracket and its arguments; any other expression as it is."""
    if not isinstance(node, ast.Call):
        return (site.text(node),)
    return (f"{site.text(node.func)}(", *(site.text(part) for part in [*node.args, *node.keywords]))


def _assignment(site: Site, statement: ast.Assign, branch: BranchWrites) -> None:
    name = own_attribute(site, statement.targets[0])
    if name is None:
        raise NotProven(f"`{speculation.short(statement)}` writes to something other than an attribute of `self`")
    text = _substituted(site, statement.value, branch)
    if _moves_itself(site, statement.value, name):
        branch.stands_for[name] = text
    else:
        _write(site, name, AttributeWrite(text, statement.value, False, site), branch)


def _moves_itself(site: Site, node: ast.expr, name: str) -> bool:
    """`self.a.to(...)` for the attribute `a`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"to", "cuda", "cpu"}
        and own_attribute(site, node.func.value) == name
    )


def _registration(site: Site, call: ast.Call, branch: BranchWrites) -> None:
    if own_attribute(site, call.func) != "register_buffer" or len(call.args) != 2:
        raise NotProven(f"`{speculation.short(call)}` may have side effects")
    name = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
    if not isinstance(name, str):
        raise NotProven("the buffer's name is not a constant")
    rest = tuple(site.text(word) for word in call.keywords)
    text = _substituted(site, call.args[1], branch)
    _write(site, name, AttributeWrite(text, call.args[1], True, site, rest), branch)


def _write(site: Site, name: str, write: AttributeWrite, branch: BranchWrites) -> None:
    del site
    if name in branch.writes:
        raise NotProven(f"`self.{name}` is written twice in one branch")
    branch.writes[name] = write


def _substituted(site: Site, node: ast.expr, branch: BranchWrites) -> str:
    """The text of `node` with attributes that the branch computed for itself replaced by what stands for them."""
    name = own_attribute(site, node)
    if name is not None and name in branch.stands_for:
        return branch.stands_for[name]
    for part in walk_in_layers(node):
        inner = own_attribute(site, part) if isinstance(part, ast.expr) else None
        if inner is not None and (inner in branch.stands_for or inner in branch.writes):
            raise NotProven(f"`{speculation.short(node)}` reads `self.{inner}`, which the branch writes")
    hazards = site.judge(node)
    if hazards.impure is not None and not _moves_itself(site, node, _attribute_of_move(site, node)):
        raise NotProven(hazards.impure)
    return site.text(node)


def _attribute_of_move(site: Site, node: ast.expr) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return own_attribute(site, node.func.value) or ""
    return ""


# Values that a branch keeps for later calls (`if not hasattr(self, "a"): self.a = ...`), for GM105


def cached_value(site: Site, statement: ast.stmt, own: str | None) -> ast.Assign | None:
    """The assignment in `if not hasattr(self, "a"): self.a = ...`, where `own` is how the function calls `self`."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return None
    test, inner = statement.test, statement.body[0]
    if not (is_not(test) and isinstance(test.operand, ast.Call)):
        return None
    call = test.operand
    if site.resolve(call.func) != "builtins.hasattr" or len(call.args) != 2 or not isinstance(inner, ast.Assign):
        return None
    wanted = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
    target = inner.targets[0]
    targets = elements_of(target)
    written = [element.attr for element in targets if is_attribute(element, own)]
    return inner if written == [wanted] else None


def why_it_is_needed(site: Site, attribute: str, node: ast.Assign) -> str | None:
    """Why anything outside of the branch may need the attribute, which the compile path does not create."""
    branch = site.place.parents[-1] if site.place.parents else node
    inside = range(branch.lineno, (branch.end_lineno or branch.lineno) + 1)  # type: ignore[attr-defined]
    for part in walk(tree_of(site.source.text)):
        named = is_literal(part, attribute)
        read = isinstance(part, ast.Attribute) and part.attr == attribute
        if (named or read) and part.lineno not in inside:  # type: ignore[attr-defined]
            return f"`{attribute}` is used outside the branch, which does not store it when compiled"
    readers = [path for path in site.evaluator.scope.index.readers(attribute) if path != site.summary.path]
    return f"`{attribute}` is used in {readers[0]}, and the branch does not store it when compiled" if readers else None


def why_it_may_change(site: Site, node: ast.expr, own: str | None) -> str | None:
    """Why a later call may compute another value for `node` than the first one, None if it does not."""
    return _Calls(site, own).why_not_same(node, frozenset())


class _Calls:
    """What the calls of one function have in common."""

    def __init__(self, site: Site, own: str | None) -> None:
        self._site = site
        self._function = site.evaluator.scope.node
        self._same = {own} | {argument.arg for argument in parameters(self._function) if _is_device(argument)}
        self._given = parameter_names(self._function)

    def why_not_same(self, node: ast.expr, seen: frozenset[str]) -> str | None:
        devices = {id(part.value) for part in walk(node) if isinstance(part, ast.Attribute) and part.attr == "device"}
        for part in walk(node):
            if isinstance(part, ast.Call) and last_name(part.func) in RANDOM:
                return f"`{speculation.short(part)}` draws random numbers, which the branch would keep"
            if isinstance(part, ast.Name) and id(part) not in devices and not self._is_same(part.id, seen):
                text = speculation.short(node)
                return f"`{text}` depends on `{part.id}`, and the branch would keep the value of the first call"
        return None

    def _is_same(self, name: str, seen: frozenset[str]) -> bool:
        if name in self._same or not self._site.evaluator.scope.is_local(name):
            return True
        if name in self._given or name in seen:
            return False
        bound = [part for part in walk(self._function) if is_name(part, name)]
        stores = [part for part in bound if not isinstance(part.ctx, ast.Load)]
        assigned = [part for part in of_kind(walk(self._function), ast.Assign) if is_name(part.targets[0], name)]
        if len(stores) != len(assigned):
            return False
        return all(self.why_not_same(part.value, seen | {name}) is None for part in assigned)


def _is_device(argument: ast.arg) -> bool:
    annotated = walk(argument.annotation) if argument.annotation is not None else ()
    return argument.arg == "device" or any(last_name(part) == "device" for part in annotated)
