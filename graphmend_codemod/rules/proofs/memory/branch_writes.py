"""What a branch writes to attributes of its instance, and what it computes before, in terms of what was there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.literals import number_of
from graphmend_codemod.analysis.patterns import elements_of, is_attribute
from graphmend_codemod.analysis.scope import walk, walk_in_layers
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import reads_tensor
from graphmend_codemod.rules.proofs.conditions.repeated_reads import acts
from graphmend_codemod.rules.proofs.memory.cached_values import cached_value, why_it_is_needed, why_it_may_change
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
