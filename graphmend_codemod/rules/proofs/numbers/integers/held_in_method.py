"""What expressions of a method hold as Python integers, with what its class, its callers and its methods say of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, calls_in, tree_of
from graphmend_codemod.analysis.list_provenance import Origins
from graphmend_codemod.analysis.patterns import (
    all_given,
    all_names,
    is_attribute,
    is_integer,
    is_name,
    names_called,
    only_target,
    owner_of,
    stores_name,
    written_integer,
)
from graphmend_codemod.analysis.scope import children, dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.torch_api import INT64_NAMES
from graphmend_codemod.analysis.value_flow import attribute_stores, closure
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link, local_names
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.integers.counted_ends import CountedEnds
from graphmend_codemod.rules.proofs.numbers.integers.held import Copy, Held
from graphmend_codemod.rules.proofs.numbers.integers.held_attributes import HeldAttributes
from graphmend_codemod.rules.proofs.numbers.integers.held_numbers import HeldNumbers
from graphmend_codemod.rules.proofs.numbers.integers.list_changes import ListChanges
from graphmend_codemod.rules.proofs.substitution import exchanged

_EXACT = "_rounds_exactly"
_HELPER = """\
def _rounds_exactly(numerator, denominator):
    \"\"\"Whether a quotient of integers in torch's default dtype is rounded up and down as the exact one is.\"\"\"
    largest = 0.5 / {torch}.finfo({torch}.get_default_dtype()).eps
    return denominator > 0 and abs(numerator) + denominator < largest"""
_LARGEST_SUMMAND = 2
"""The largest number added to a quotient for which the helper tells whether it is rounded alike."""


class _Quotient(NamedTuple):
    """`numerator / denominator + summand` of integers in tensors."""

    numerator: Held
    denominator: Held
    summand: int


class NumbersHere(HeldNumbers):
    """What expressions of the function around a site hold."""

    def __init__(self, site: Site, own: Definition) -> None:
        super().__init__(site, site.evaluator.scope.node)
        self.own = own
        self.attributes = HeldAttributes(site)
        self.ends = CountedEnds(self, own)
        self.helpers: dict[str, Helper] = {}

    def _named(self, node: ast.Name, at: ast.stmt, depth: int) -> Held | None:
        paired, reason = None, None
        if depth and at is self.site.place.statement:
            try:
                paired = paired_list(self.site, self.own, node.id, at, depth)
            except NotProven as unsure:
                reason = unsure
        if paired is not None:
            bound = self.blocks.binding_before(at, node.id)
            if bound is not None:
                self.copies.append(Copy(bound, node.id, paired.text, "", "", (), None, [at]))
            return paired
        held = super()._named(node, at, depth)
        if held is None and reason is not None:
            raise reason
        return held

    def _attribute(self, node: ast.Attribute) -> Held | None:
        return self.attributes.number(node.attr) if is_attribute(node, "self") else None

    def _end(self, node: ast.BinOp, at: ast.stmt) -> Held | None:
        return None if self._inlined else self.ends.end(node, at)

    def _called(self, call: ast.Call, at: ast.stmt) -> Held | None:
        if is_attribute(call.func, "self") and not self._inlined:
            return self._returned(call, at)
        return self._rounded(call, at) or super()._called(call, at)

    def _returned(self, call: ast.Call, at: ast.stmt) -> Held | None:
        """What a method returns that only computes it, in words of its caller."""
        sure = sure_calls(self.site)
        callee = sure.certain(self.own, call)
        own = callee is not None and callee.node.name == call.func.attr and not callee.node.decorator_list  # type: ignore[attr-defined]
        result = _result(callee, call) if own and callee is not None else None
        if result is None or callee is None:
            return None
        self._inlined = True
        try:
            held = self.held(result, at, 0)
        finally:
            self._inlined = False
        if held is None or not held.tensor:
            return None
        certain = CertainCalls(self.site, sure.calls)
        certain.follow(certain.start(), Link(self.own, call, callee))
        return held._replace(asked=(*held.asked, *certain.conditions()))

    def _rounded(self, call: ast.Call, at: ast.stmt) -> Held | None:
        """`torch.ceil(quotient).to(torch.int64)`."""
        inner = owner_of(call)
        if not isinstance(inner, ast.Call) or len(inner.args) != 1 or inner.keywords:
            return None
        rounds = self.site.resolve_global(inner.func)
        kinds = [self.site.resolve_global(each) for each in all_given(call)]
        method = call.func.attr  # type: ignore[attr-defined]
        whole = (method == "long" and not kinds) or (method == "to" and len(kinds) == 1 and kinds[0] in INT64_NAMES)
        if rounds not in {"torch.ceil", "torch.floor"} or not whole:
            return None
        found = self._quotient(inner.args[0], at)
        if found is None:
            return None
        above, below = found.numerator.operand(), found.denominator.operand()
        text = f"{above} // {below}" if rounds == "torch.floor" else f"-(-{above} // {below})"
        if found.summand:
            text = f"{text} {'+' if found.summand > 0 else '-'} {abs(found.summand)}"
        self.helpers[_EXACT] = Helper(
            _EXACT, _HELPER.format(torch=self.site.torch), after=(self.site.torch or "torch",)
        )
        asked = (*found.numerator.exact(), *found.denominator.exact())
        return Held(text, asked=(*asked, f"{_EXACT}({found.numerator.text}, {found.denominator.text})"))

    def _quotient(self, node: ast.expr, at: ast.stmt) -> _Quotient | None:
        summand = 0
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)) and is_integer(node.right):
            summand = (written_integer(node.right) or 0) * (1 if isinstance(node.op, ast.Add) else -1)
            node = node.left
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div) or abs(summand) > _LARGEST_SUMMAND:
            return None
        above, below = self.held(node.left, at, 0), self.held(node.right, at, 0)
        if above is None or below is None or not above.tensor or not below.tensor:
            return None  # torch divides by a Python number by way of the reciprocal
        # So it does where a number stays on the CPU and the other one does not.
        moves = is_attribute(node.right, "self") and self.attributes.is_buffer(node.right.attr)
        return _Quotient(above, below, summand) if moves else None


def _result(callee: Definition, call: ast.Call) -> ast.expr | None:
    """What a call returns, with its arguments in the place of parameters, and values in that of local names."""
    given, others = callee.arguments(call)
    known = {*callee.parameters} == {*given} and not others and all(dotted(each) is not None for each in given.values())
    *above, last = callee.node.body
    if not known or not isinstance(last, ast.Return) or last.value is None:
        return None
    values = dict(given)

    def in_place(part: ast.expr) -> ast.expr | None:
        return values.get(part.id) if isinstance(part, ast.Name) else None

    for each in above:
        target = only_target(each)
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            continue
        if not isinstance(each, ast.Assign) or not isinstance(target, ast.Name):
            return None
        values[target.id] = exchanged(each.value, in_place)
    found = exchanged(last.value, in_place)
    free = all_names(found)
    given_names = {name for each in given.values() for name in all_names(each)}
    inner = (local_names(callee.node) | parameter_names(callee.node)) - {"self"} - given_names
    return found if free.isdisjoint(inner) else None


# Lists that a function has together with the tensor that was built from them: it built that itself, or is given both


def paired_list(site: Site, own: Definition, tensor: str, at: ast.stmt, depth: int) -> Held | None:
    """The list of sizes from which a tensor was built, here or by every caller; NotProven where that is not certain."""
    origins, value = site.flow.origins, site.place.env.get(tensor)
    if origins is None or value is None or value.built_from is None:
        return None
    source = value.built_from
    known = {**site.flow.lists, **origins.builders.get(own.key, {})}
    if known.get(tensor) != source:
        raise NotProven(f"`{source}` may have changed since `{tensor}` was built from it")
    calls = calls_in(site.source.text)
    for key, pairs in origins.builders.items():
        for given in pairs.values():
            if _is_parameter(calls.definitions[key], given):
                raise NotProven(f"only an annotation says that `{given}` contains integers")
    _Callers(site, origins).demand_known(own)
    changes = ListChanges(calls, lambda name: site.evaluator.scope.index.resolve(site.summary.name, name))
    changed = changes.before(own, tensor, source, at.lineno - 1)
    if changed is not None:
        raise NotProven(f"`{' '.join(changed.split())}` may change `{source}` or `{tensor}`")
    return Held(source, depth, sure=depth == 2)  # its elements may be rows


class _Callers:
    """The calls of one module that pass a tensor together with the list it was built from."""

    def __init__(self, site: Site, origins: Origins) -> None:
        self._site, self._calls, self._builders = site, calls_in(site.source.text), origins.builders

    def demand_known(self, function: Definition) -> None:
        """NotProven where a function may be called with another tensor or list than in the calls that are known."""

        def callers(each: Definition) -> Iterator[Definition]:
            return (caller for caller, _ in self._calls.callers(each) if each.key not in self._builders)

        for each in closure([function], callers):
            if each.key not in self._builders:
                self._demand_no_other(each)

    def _demand_no_other(self, function: Definition) -> None:
        name, known = function.owner or function.qualname, {id(call.func) for _, call in self._calls.callers(function)}
        users = self._site.evaluator.scope.index.users(f"{self._site.summary.name}.{name}")
        if users:
            raise NotProven(f"`{name}` is used in {users[0]} as well, which may pass another list with the tensor")
        for parent in walk(tree_of(self._site.source.text)):
            for part in children(parent):
                if id(part) not in known and self._leads_to(function, part, parent):
                    raise NotProven(f"`{short(parent)}` may pass `{function.qualname}` another list with the tensor")

    def _leads_to(self, function: Definition, part: ast.AST, parent: ast.AST) -> bool:
        """True where a node may stand for the function, or for an instance that is called."""
        if not function.owner:
            return is_name(part, function.qualname)
        if not isinstance(part, ast.Attribute) or not isinstance(part.ctx, ast.Load):
            return False
        if function.node.name != "forward":
            return part.attr == function.node.name
        if part.attr in {"forward", "__call__"}:
            held = part.value.attr if isinstance(part.value, ast.Attribute) else ""
            return held in self._holders(function.owner) or isinstance(part.value, ast.Call)
        # An instance goes elsewhere: into a name, a call, a container.
        inside = isinstance(parent, (ast.Attribute, ast.For, ast.comprehension, ast.Subscript, ast.Compare, ast.Return))
        counted = isinstance(parent, ast.Call) and dotted(parent.func) in {"enumerate", "len"}
        return part.attr in self._holders(function.owner) and not inside and not counted

    def _holders(self, owner: str) -> set[str]:
        """The attributes that the module gives instances of a class, or of a subclass, alone or in a list."""
        return self._calls.remembered("holders", owner, lambda: set(self._find_holders(owner)))

    def _find_holders(self, owner: str) -> Iterator[str]:
        for name, stores in attribute_stores(self._calls).items():
            made = {each for store in stores if store.value is not None for each in names_called(walk(store.value))}
            if any(each == owner or self._calls.is_heir(each, owner) for each in made):
                yield name


def _is_parameter(function: Definition, name: str) -> bool:
    """True for a list that a function is given: only an annotation says what it holds."""
    bound = any(stores_name(part, name) for part in walk_scope(function.node))
    return not bound and name in parameter_names(function.node)
