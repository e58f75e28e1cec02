"""A branch without `else` that replaces attributes as a tensor outgrows them, for GM105: every write becomes a select.

Dynamic rotary embeddings recompute their frequencies for a sequence that is longer than any before, and take the
original ones back for a short one. The new value is computed in any case, and selected where the branch would be taken.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import is_attribute, is_name, is_none, last_name, operands_of, same
from graphmend_codemod.analysis.scope import walk_in_layers
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.edits import computed_in_front, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.computed_anyway import demand_no_effects


@dataclass(eq=False, repr=False)
class _Branch:
    """What a compile path says for the branch, filled statement by statement.

    `lines` compute values under names of their own. `writes` are attributes, each with its new value and, where
    `register_buffer` writes it, the other arguments of that call. `numbers` are attributes that get a Python number,
    with the name of the number.
    """

    lines: list[str] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    writes: list[tuple[str, str, list[str] | None]] = field(default_factory=list)


def growing_edit(site: Site, node: ast.If, own: str) -> Edit:
    """The compile path in front of `if length > self.longest: self.a = ...; self.longest = length`.

    `own` is the name of the object whose attributes are written. NotProven with the reason if there is none.
    """
    condition = _condition(site, node.test, own)
    branch = _Branch()
    for statement in node.body:
        _statement(site, statement, own, branch)
    if not branch.writes:
        raise NotProven("no attribute is written")
    read = {part.attr for part in walk_in_layers(node.test) if isinstance(part, ast.Attribute)}
    asked_before = [f'hasattr({own}, "{name}")' for name, _, _ in branch.writes if name not in read]
    asked_behind = []
    for name, value, given in branch.writes:
        asked = alike(value, f"{own}.{name}")
        if given is None and name in read:  # compared with, it may be a number until the first of them is a tensor
            numbers = f"not isinstance({own}.{name}, {site.torch}.Tensor)"
            tensor = (known := site.place.env.get(value)) is not None and known.is_tensor
            numbers = numbers if tensor else f"{numbers} or not isinstance({value}, {site.torch}.Tensor)"
            asked = f"({numbers} or {asked})"
        asked_behind.append(asked)
    # A number cannot be selected: it has to be the one that is there.
    asked_before += [
        f'isinstance(getattr({own}, "{place.partition(".")[2]}", None), (int, float))' for place in branch.numbers
    ]
    asked_behind += (f"(type({n}), {n}) == (type({place}), {place})" for place, n in branch.numbers.items())
    lines: list[str] = []
    if len(branch.writes) > 1:
        name = site.free_name("outgrown", "changes")
        lines.insert(0, f"{name} = {condition}")
        condition = name
    for name, value, arguments in branch.writes:
        select = f"{site.torch}.where({condition}, {value}, {own}.{name})"
        if arguments is None:
            lines.append(f"{own}.{name} = {select}")
        else:
            lines.append(site.call(f"{own}.register_buffer(", [f'"{name}"', select, *arguments], deeper=1))
    return computed_in_front(site, node, asked_before, branch.lines, asked_behind, lines)


def alike(one: str, other: str) -> str:
    """The condition that two tensors have one shape and dtype, so that a select between them changes neither."""
    return f"({one}.shape, {one}.dtype) == ({other}.shape, {other}.dtype)"


def _condition(site: Site, test: ast.expr, own: str) -> str:
    """The test as one tensor. NotProven for what is no comparison of single elements, numbers and own attributes."""
    conjuncts = operands_of(test, ast.And)
    for part in conjuncts:
        if not isinstance(part, ast.Compare) or len(part.ops) != 1:
            raise NotProven(f"`{speculation.short(part)}` is not a comparison")
        for side in (part.left, part.comparators[0]):
            single = site.value(side).is_single or site.value(side).is_python
            if not single and not is_attribute(side, own):
                raise NotProven(
                    f"`{speculation.short(side)}` may have more than one element; reduce it with `.any()` or `.all()`"
                )
    if len(conjuncts) > 1:  # the second may raise where the first does not hold
        raise NotProven(f"`{speculation.short(test)}` asks several conditions; nest them: `if ...:` around `if ...:`")
    return site.text(test)


def _statement(site: Site, statement: ast.stmt, own: str, branch: _Branch) -> None:
    """Note what a statement of the branch computes or writes. NotProven where it does anything else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        _assignment(site, statement, statement.targets[0], own, branch)
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        if not is_attribute(call.func, own, "register_buffer") or len(call.args) != 2 or not isinstance(name, str):
            raise NotProven(f"`{speculation.short(call)}` may have side effects")
        value = _value(site, call.args[1], own, branch)
        branch.writes.append((name, value, [site.text(word) for word in call.keywords]))
    else:
        raise NotProven(f"`{speculation.short(statement)}` does more than assign an attribute")


def _assignment(site: Site, statement: ast.Assign, target: ast.expr, own: str, branch: _Branch) -> None:
    value = statement.value
    if isinstance(value, ast.Call) and is_attribute(value.func, own):
        if not isinstance(target, ast.Tuple) or not isinstance(target.elts[0], ast.Name):
            raise NotProven(f"`{speculation.short(statement)}` may have side effects")
        demand_no_effects(site, value, own)
        names = []
        for each in target.elts:
            if is_attribute(each, own):
                names.append(site.free_name(each.attr))
                branch.numbers[f"{own}.{each.attr}"] = names[-1]
            elif isinstance(each, ast.Name):
                names.append(each.id)
            else:
                raise NotProven(f"`{speculation.short(each)}` is also written")
        branch.lines.append(f"{', '.join(names)} = {site.text(value)}")
    elif not is_attribute(target, own):
        raise NotProven(f"`{speculation.short(statement)}` writes to something other than an attribute")
    else:
        branch.writes.append((target.attr, _value(site, value, own, branch), None))


def _value(site: Site, node: ast.expr, own: str, branch: _Branch) -> str:
    """What an attribute gets, as text: a name, or another attribute as it was before the branch."""
    if isinstance(node, ast.Name):
        return node.id
    if is_attribute(node, own):
        assert isinstance(node, ast.Attribute)
        if node.attr in {name for name, _, _ in branch.writes}:
            raise NotProven(f"`{speculation.short(node)}` is read after the branch wrote it")
        return site.text(node)
    raise NotProven(f"`{speculation.short(node)}` may have a different shape from the tensor that it replaces")


def larger_of(site: Site, node: ast.Assign) -> Edit | None:
    """`n = n if n is not None and n > m else m`, where the file gives a tensor's largest value for `n` somewhere."""
    found = _larger(node)
    if found is None or site.torch is None or not _given_tensor(site, found[0]):
        return None
    name, bound = found
    clamp = f"{name} = {site.torch}.clamp({name}, min={site.text(bound)})"
    return two_paths(site, node, [site.compiling, f"isinstance({name}, {site.torch}.Tensor)"], [clamp])


def _larger(node: ast.Assign) -> tuple[str, ast.expr] | None:
    """`n` and `m` of `n = n if n is not None and n > m else m`."""
    value, target = node.value, node.targets[0]
    if not isinstance(value, ast.IfExp) or not isinstance(target, ast.Name) or not isinstance(value.test, ast.BoolOp):
        return None
    bound, kept = value.orelse, value.body
    if not isinstance(bound, (ast.Name, ast.Attribute)) or not is_name(kept, target.id):
        return None
    return (target.id, bound) if _asks_for_larger(value.test, target.id, bound) else None


def _asks_for_larger(test: ast.BoolOp, name: str, bound: ast.expr) -> bool:
    """True for `name is not None and name > bound`."""
    parts = [each for each in test.values if isinstance(each, ast.Compare) and is_name(each.left, name)]
    if not isinstance(test.op, ast.And) or len(test.values) != 2 or len(parts) != 2:
        return False
    (there, larger), (none, other) = [each.ops[0] for each in parts], [each.comparators[0] for each in parts]
    plain = all(len(each.ops) == 1 for each in parts) and isinstance(there, ast.IsNot) and isinstance(larger, ast.Gt)
    return plain and is_none(none) and same(other, bound)


def _given_tensor(site: Site, name: str) -> bool:
    """True when a function of the file hands `name=name` on, with a name that holds the largest value of a tensor."""
    tree = tree_of(site.source.text)
    for function in walk_in_layers(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        largest = hands_on = False
        for part in walk_in_layers(function):
            if isinstance(part, ast.Assign) and is_name(part.targets[0], name):
                calls = (each for each in walk_in_layers(part.value) if isinstance(each, ast.Call))
                largest = largest or any(last_name(each.func) == "max" for each in calls)
            elif isinstance(part, ast.keyword) and part.arg == name and isinstance(part.value, ast.Name):
                hands_on = hands_on or part.value.id == name
        if largest and hands_on:
            return True
    return False
