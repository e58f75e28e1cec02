"""branch-writes-state (GM105): a data-dependent branch that assigns a tensor to an attribute or buffer.

Rotary embeddings keep several frequency tables and register the one that fits the longest position. The compile path
computes what both branches would write, without touching anything else, asks whether both have one shape and dtype, and
writes the selected tensor under the same name. It never copies in place: attributes often alias each other
(`self.original_inv_freq = self.inv_freq`), and a copy into one would change the other. Eager mode runs the original
statements, word for word.

Where Python values choose what the other branch writes (`elif self.momentum == 1: ... else: ...`), they do so in the
compile path, too. So moving averages of observed ranges, which begin with the first batch, are one graph.

A branch without `else` selects between the new value and the one that the attribute has: a state that grows with the
longest input (dynamic rotary embeddings) is computed for every input, and kept where it would not be replaced. A Python
number that the same call gives has to be the one that is there. Methods that a branch calls must do nothing but
compute.

A branch that initialises parameters or buffers once, under a flag that is kept in a buffer
(`if not self.done: self.scale.data = 1 / x.std(0); self.done.fill_(True)`), is computed for every input, and each
tensor gets the selected value where it fits; otherwise the branch runs as it did. Statements of the branch must be
cheap, draw no random numbers, and be unable to raise where eager mode skips them. A tensor whose `data` the branch
replaces (`self.scale.data = x`) and which needs a gradient is written into: compiled code would give it none otherwise.
Where another tensor of the module shares its memory the branch runs as it did. What was made of its memory outside of
the module before (a `state_dict()` that was not copied) sees the new values, too.

A value that a branch caches for itself (`if not hasattr(self, "a"): self.a = ...`) is computed in the graph instead of
stored, where every call would compute the same one and nothing else in the project reads it. What it is made of may be
set by no method but the constructor, and by no other file that names the class. An attribute that a branch only moves
to a device is moved there for the select alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import aliasing, speculation, torch_api
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.patterns import is_attribute
from graphmend_codemod.analysis.scope import dotted, walk, walk_in_layers
from graphmend_codemod.analysis.values import SCALAR, ValueKind
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import computed_in_front
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import FLOAT_WARNING, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.condition import Condition, split
from graphmend_codemod.rules.proofs.conditions.condition_parts import is_registered
from graphmend_codemod.rules.proofs.conditions.type_conditions import tensor_facts
from graphmend_codemod.rules.proofs.memory.branch_writes import (
    Arm,
    AttributeWrite,
    arguments_of,
    arms_of,
    own_attribute,
    self_name,
    writes_of,
)
from graphmend_codemod.rules.proofs.memory.growing_state import alike, growing_edit, larger_of
from graphmend_codemod.rules.proofs.memory.identity import why_attributes_must_stay
from graphmend_codemod.rules.proofs.memory.initialised_state import FILLS, initialising_edit, without_data
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write

rule = Rule(
    __name__,
    __doc__,
    title="select the written tensor instead of branching around the write",
    contract=Contract(
        cost=Cost.BOTH_ARMS,
        cost_note="what each branch would write is always computed, and one is selected",
        compiled_state=(
            "the selected tensor is written; values that a branch caches are not stored; where `data` is replaced, "
            "torch.compile notes a bool among the globals of the file"
        ),
        compiled_logs=FLOAT_WARNING,
    ),
)


@rule.on(ast.If, candidate="test")
def state_branch(site: Site, node: ast.If) -> Diagnostic | None:
    """`if t: self.a = A ... else: self.a = B`."""
    condition = split(site, node.test)
    if condition is None or not any(_writes_state(site, statement) for statement in [*node.body, *node.orelse]):
        return None
    message = f"data-dependent branch that writes attributes: `{speculation.short(node.test)}`"
    own = self_name(site)
    try:
        if (reason := why_attributes_must_stay(site, _replaced(site, node))) is not None:
            raise NotProven(reason)
        _demand_unwritten(site, node)
        if (
            not node.orelse
            and own is not None
            and site.torch is not None
            and condition.hazards.impure is condition.skipped is None
        ):
            return Diagnostic(message, edit=_alone(site, node, condition, own))
        return Diagnostic(message, edit=_edit(site, node, condition))
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


def _alone(site: Site, node: ast.If, condition: Condition, own: str) -> Edit:
    """A branch without `else`: state that grows, or that is initialised once."""
    try:
        return growing_edit(site, node, own)
    except NotProven:
        if not any(_fills(site, part) for statement in node.body for part in walk(statement)):
            raise
    return initialising_edit(site, node, condition, own)


def _fills(site: Site, node: ast.AST) -> bool:
    """`self.a.data = x`, `self.a.copy_(x)`, `self.a.data.fill_(1)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "data":
        return own_attribute(site, node.value) is not None
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute) or called.attr not in FILLS:
        return False
    return own_attribute(site, without_data(called.value)) is not None


def _replaced(site: Site, node: ast.If) -> set[str]:
    """The attributes that get a tensor of the select, and those whose tensor they would have held."""
    found: set[str] = set()
    for part in [part for statement in [*node.body, *node.orelse] for part in walk(statement)]:
        if isinstance(part, ast.Assign) and _makes_tensor(site, part):
            continue  # a tensor that nobody else has, as the select's is
        if isinstance(part, ast.Assign):
            pairs: list[ast.expr] = [*part.targets, part.value]
        elif isinstance(part, ast.Call) and own_attribute(site, part.func) == "register_buffer" and part.args:
            pairs = part.args[1:2]
            name = part.args[0].value if isinstance(part.args[0], ast.Constant) else None
            found |= {name} if isinstance(name, str) else set()
        else:
            continue
        found |= {name for each in pairs if (name := own_attribute(site, each)) is not None}
    return found


def _demand_unwritten(site: Site, node: ast.If) -> None:
    """NotProven where a variable of which a branch makes an attribute is written in place below, or is a parameter."""
    parts = [part for statement in [*node.body, *node.orelse] for part in walk(statement)]
    kept = [part for part in parts if isinstance(part, ast.Assign) and not _makes_tensor(site, part)]
    held = [part for part in kept if any(own_attribute(site, each) is not None for each in part.targets)]
    bound = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    names = {name for each in held for name in _kept_names(each.value)} - {self_name(site), *bound}
    written = {name for each in held for part in (*each.targets, each.value) if (name := own_attribute(site, part))}
    for name in sorted(written):
        fact = site.evaluator.scope.attribute(name)
        if fact is not None and fact.kind is AttributeKind.PARAMETER:
            raise NotProven(f"`self.{name}` is a parameter, and `torch.where` returns a tensor that is none")
    if site.keeps_graph(ast.Name(each, ast.Load()) for each in sorted(names)):
        raise NotProven(
            "`torch.where` would return a tensor without a gradient, where eager mode keeps one that has it"
        )
    if names and calls_in(site.source.text).at(site.evaluator.scope.node.lineno) is not None:
        demand_no_write(site, node, names)


def _kept_names(node: ast.expr) -> set[str]:
    """The names of tensors of which an expression may be a view, or one of which it is."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.IfExp):
        return _kept_names(node.body) | _kept_names(node.orelse)
    if isinstance(node, (ast.Subscript, ast.Attribute, ast.NamedExpr)):
        return _kept_names(node.value)
    if not isinstance(node, ast.Call):
        return set()
    method = isinstance(node.func, ast.Attribute) and not is_attribute(node.func, "torch")
    return _kept_names(node.func.value if method else node.args[0]) if method or node.args else set()  # type: ignore[attr-defined]


def _makes_tensor(site: Site, statement: ast.Assign) -> bool:
    """True for `self.a = self.a + x`, whose result shares memory with nothing."""
    inner, made = site.at(statement), statement.value
    if inner is None or not isinstance(made, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)):
        return False  # what a name holds may be held by others
    if isinstance(made, ast.Call) and torch_api.torch_function(inner.resolve(made.func)) in aliasing.FRESH:
        return all(word.arg not in {"out", None} for word in made.keywords)
    value = inner.value(made)
    return value.is_tensor and inner.is_fresh(value)


@rule.on(ast.Assign, candidate="test", when=lambda node: isinstance(node.value, ast.IfExp))
def larger_of_two(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`n = n if n is not None and n > m else m`, for a state that grows with a tensor's largest value."""
    edit = larger_of(site, node)
    return (
        None
        if edit is None
        else Diagnostic(f"data-dependent maximum of two sizes: `{speculation.short(node.value)}`", edit=edit)
    )


def _writes_state(site: Site, statement: ast.stmt) -> bool:
    for node in walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and own_attribute(site, node):
            return True
        if (isinstance(node, ast.Call) and own_attribute(site, node.func) == "register_buffer") or _fills(site, node):
            return True
    return False


def _edit(site: Site, node: ast.If, condition: Condition) -> Edit:
    if condition.several is not None:
        raise NotProven(f"`{condition.several}` may have more than one element; reduce it with `.any()` or `.all()`")
    if (why := condition.hazards.impure or condition.skipped) is not None:
        raise NotProven(why)
    if condition.static:
        raise NotProven(
            f"`{site.text(condition.static[0])}` and a tensor are combined in one condition; "
            f"nest them: `if {site.text(condition.static[0])}:` around the tensor test"
        )
    if not node.orelse:
        raise NotProven("the attributes are written in only one branch")
    read = {part.id for tensor in condition.tensors for part in walk_in_layers(tensor) if isinstance(part, ast.Name)}
    read = {name for name in read if (value := site.place.env.get(name)) is not None and value.is_tensor}
    for part in [part for statement in [*node.body, *node.orelse] for part in walk_in_layers(statement)]:
        if isinstance(part, ast.Name) and part.id in read:
            raise NotProven(f"the written tensor depends on `{part.id}`, and so may its shape")
    taken, others = writes_of(site, node.body), arms_of(site, node.orelse)
    for name in sorted({each for arm in others for each in taken.writes.keys() ^ arm.writes.writes.keys()}):
        raise NotProven(f"`self.{name}` is written in only one branch")
    lines = [*taken.lines, *(others[0].writes.lines if len(others) == 1 else [])]
    facts, selects = [*condition.facts], []
    chosen = condition.text
    if len(taken.writes) > 1 and not taken.writes.keys().isdisjoint(_own_names(site, condition)):
        chosen = site.free_name("first", "first_is_taken")  # what the second select asks, the first has written
        selects.append(f"{chosen} = {condition.text}")
    named = {name: _named(site, name, write, lines) for name, write in taken.writes.items()}
    named_too = _named_in_arms(site, others, lines)
    for name, write in taken.writes.items():
        facts.append(alike(named[name], named_too[name]))
        selects.append(_selected(site, name, chosen, named[name], named_too[name], write, others))
    known = dict.fromkeys([*_asked_of_buffers(site, condition), *(each for arm in others for each in arm.known)])
    for name, write in taken.writes.items():
        known |= dict.fromkeys(asked_of([write, *(arm.writes.writes[name] for arm in others)]))
    return computed_in_front(site, node, list(known), lines, [each for each in facts if each not in known], selects)


def _named_in_arms(site: Site, arms: list[Arm], lines: list[str]) -> dict[str, str]:
    """Names for what the other branch writes: Python values choose among its arms before the tensor does."""
    first = arms[0].writes.writes
    if len(arms) == 1:
        return {name: _named(site, f"other_{name}", write, lines) for name, write in first.items()}
    names = {name: site.free_name(f"other_{name}") for name in first}
    for arm in arms:
        bound = [f"{names[name]} = {_tensor(site, write)}" for name, write in arm.writes.writes.items()]
        inside = "\n".join([*arm.writes.lines, *bound]).split("\n")
        lines += [arm.head, *(f"    {each}" for each in inside)]
    return names


def _own_names(site: Site, condition: Condition) -> set[str]:
    """The attributes that the tensors of a condition read."""
    parts = (part for tensor in condition.tensors for part in walk(tensor) if isinstance(part, ast.expr))
    return {name for part in parts if (name := own_attribute(site, part)) is not None}


def _asked_of_buffers(site: Site, condition: Condition) -> list[str]:
    """A buffer that is tested by itself may have been made None."""
    tested = [part for tensor in condition.tensors for part in walk(tensor) if isinstance(part, ast.Attribute)]
    own = dict.fromkeys(site.text(part) for part in tested if is_registered(site, part))
    return [f"isinstance({each}, {site.torch}.Tensor)" for each in own]


def _named(site: Site, name: str, write: AttributeWrite, lines: list[str]) -> str:
    """A name for the value, so that it can be asked for its shape: its own, or one that is bound in a new line."""
    _tensor(site, write)
    if write.value.replace(".", "_").isidentifier():
        return write.value
    local = site.free_name(name)
    head, *given = arguments_of(site, write.node) if site.text(write.node) == write.value else (write.value,)
    whole = f"{local} = {head}"
    lines.append(site.call(whole, given, deeper=1, after=")") if head.endswith("(") else whole)
    return local


def _tensor(site: Site, write: AttributeWrite) -> str:
    """The text of what is written, which is no Python value."""
    if site.value(write.node).is_python:
        raise NotProven(f"`{write.value}` is not a Tensor")
    return write.value


def _selected(
    site: Site,
    name: str,
    condition: str,
    one: str,
    two: str,
    taken: AttributeWrite,
    others: list[Arm],
) -> str:
    ways = {(each.registers, each.rest) for each in (taken, *(arm.writes.writes[name] for arm in others))}
    if len(ways) > 1:
        raise NotProven(f"`self.{name}` is written differently in each branch")
    owner = self_name(site)
    if taken.registers:
        select = f"{site.torch}.where({condition}, {one}, {two})"
        return site.call(f"{owner}.register_buffer(", [f'"{name}"', select, *taken.rest], deeper=1)
    return site.call(f"{owner}.{name} = {site.torch}.where(", [condition, one, two], deeper=1)


# What the branches of GM105 write, computed where eager mode skips them: when that cannot raise

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_OF_TWO = frozenset({"min", "max", "minimum", "maximum"})


def asked_of(writes: Sequence[AttributeWrite]) -> Iterator[str]:
    """Conditions under which none of the values that one attribute may get raises. NotProven where there are none."""
    leaves = [_leaves(each.site, each.node) for each in writes]
    plain = [each for each in leaves if each is not None]
    common = set.intersection(*map(set, plain)) if len(plain) == len(leaves) else set()
    for write, found in zip(writes, leaves, strict=True):
        if write.value != write.site.text(write.node):
            continue  # what the branch computed before and keeps
        if found is None or len(found) == 1:
            yield from _asked(write.site, write.node)
            continue
        beside = next(
            (part for text, part in found.items() if text in common and write.site.value(part).is_tensor), None
        )
        for text, node in found.items():
            if text not in common:
                yield from _asked_of_other(write.site, node, beside)


def _leaves(site: Site, node: ast.expr) -> dict[str, ast.expr] | None:
    """The names and attributes that arithmetic combines, by their texts; None for any other expression."""
    if isinstance(node, ast.Constant):
        return {}
    if dotted(node) is not None:
        return {ast.unparse(node): node}
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        parts = [node.left, node.right]
        if isinstance(node.op, ast.Div) and not site.value(node).is_tensor:
            return None  # Python refuses to divide by zero
    elif isinstance(node, ast.Call) and not node.keywords and site.operation(node)[0] in _OF_TWO:
        parts = site.operation(node)[1]
    else:
        return None
    found = [_leaves(site, each) for each in parts]
    if len(parts) != 2 or any(each is None for each in found):
        return None
    return {text: part for each in found if each is not None for text, part in each.items()}


def _asked_of_other(site: Site, node: ast.expr, beside: ast.expr | None) -> Iterator[str]:
    """What is asked of an operand that only some of the branches have, `beside` a tensor that all of them have."""
    value, text = site.value(node), site.text(node)
    if value.kind is not ValueKind.TENSOR:
        yield f"isinstance({text}, (int, float))"
        return
    if beside is None:
        raise NotProven(f"`{text}` may not fit where eager mode skips it")
    yield from tensor_facts(site, node)
    if value.shape != SCALAR:
        yield from tensor_facts(site, beside)
        yield f"{text}.shape == {site.text(beside)}.shape"


def _asked(site: Site, node: ast.expr) -> Iterator[str]:
    hazards = site.judge(node)
    if hazards.raises is not None:
        raise NotProven(f"{hazards.raises} where eager mode skips it")
    yield from tensor_facts(site, node)
    parts = [part for part in walk_in_layers(node) if isinstance(part, ast.expr) and dotted(part) is not None]
    if hazards.needs_floating:
        yield from (f"{site.text(each)}.is_floating_point()" for each in parts if site.value(each).is_tensor)
