"""Arrays that numbers alone decide: windows, filter banks, index tables. torch.compile computes them while it traces.

A helper under `torch.compiler.assume_constant_result` runs the author's expression on what its numbers are. The graph
holds a tensor of its own, which is copied where it is used: eager mode makes a new array each time. Where a number is
the symbol of a dynamic size after all, the graph breaks at the helper, which then runs as any function does.

A helper returns a tuple of tensors, never one itself: torch 2.13 gives all of these that one function makes a single
name, and AOTAutograd takes no graph in which two of them have it.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis.patterns import (
    all_given,
    is_integer,
    is_name,
    is_size,
    is_within,
    last_name,
    mentions,
    names_beyond,
    only_target,
    root_of,
)
from graphmend_codemod.analysis.scope import dotted, parents_in, walk_in_layers
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.edits import CONSTANT, line_of, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.constants.cached_functions import ARE_CONSTANTS, is_hidden
from graphmend_codemod.rules.proofs.constants.libraries import MAKERS, NUMBERS, Kind
from graphmend_codemod.rules.proofs.constants.pure_values import Frame, PureValues
from graphmend_codemod.rules.proofs.substitution import exchanged


class Computed(NamedTuple):
    """An expression that helpers can compute, what it is, and what it is made of: numbers and functions of the project.

    `whole` is the expression with what earlier statements bound in the place of their names.
    """

    node: ast.expr
    whole: ast.expr
    kind: Kind
    numbers: dict[str, ast.expr]
    functions: list[ast.expr]


def arrays_in(site: Site, statement: ast.stmt) -> list[Computed]:
    """The outermost calls of a statement that break the graph, with as much around them as makes an array."""
    value = getattr(statement, "value", None)
    if value is None or is_hidden(site):
        return []
    found: list[Computed] = []
    parents = parents_in(statement)
    for call in walk_in_layers(value):
        if isinstance(call, ast.Call) and not any(is_within(call, each.node) for each in found):
            each = _around(site, statement, call, parents)
            found += [each] if each is not None else []
    return found


def _around(site: Site, statement: ast.stmt, call: ast.Call, parents: dict[int, ast.AST]) -> Computed | None:
    """The smallest expression around a call that is an array, or a number of Python; None where Dynamo traces it."""
    node: ast.AST = call
    try:
        while isinstance(node, ast.expr):
            if not isinstance(node, ast.Attribute):  # `x.astype` of a call of it
                computed = _computed(site, statement, node)
                if computed is None or _is_usable(statement, computed):
                    return computed
            node = parents[id(node)]
    except NotProven:
        pass  # of which GM703 tells
    return None


def _is_usable(statement: ast.stmt, computed: Computed) -> bool:
    if computed.kind is Kind.ARRAYS:
        return isinstance(only_target(statement), ast.Tuple) and computed.node is statement.value  # type: ignore[attr-defined]
    return computed.kind in {Kind.ARRAY, Kind.NUMBER}


def _computed(site: Site, statement: ast.stmt, node: ast.expr) -> Computed | None:
    """What an expression is made of; None where Dynamo traces it. NotProven where it depends on more than numbers."""
    scope = site.evaluator.scope
    leaves = _Leaves(site, statement)
    values = PureValues(site)
    whole = leaves.whole(node)
    kind = values.kind(whole, Frame(site.summary.name, scope.locals | scope.closure, {}, leaves.kind))
    if not values.breaks or (values.called and not any(takes_array for _, takes_array in values.called)):
        return None  # a function that gets numbers has a compile path of its own
    leaves.demand_numbers(whole)
    if leaves.numbers:
        _demand_always_evaluated(statement, node)
    return Computed(node, whole, kind, leaves.numbers, [called for called, _ in values.called])


def _demand_always_evaluated(statement: ast.stmt, node: ast.expr) -> None:
    """NotProven where the header would read numbers that the statement itself may not, or not yet, or has elsewhere."""
    parents = parents_in(statement)
    inner: ast.AST = node
    while (outer := parents[id(inner)]) is not statement:
        chosen = isinstance(outer, ast.IfExp) and inner is not outer.test
        chosen = chosen or (isinstance(outer, ast.BoolOp) and inner is not outer.values[0])
        if chosen or isinstance(outer, _SCOPES):
            raise NotProven(f"`{short(node)}` is not always evaluated; assign it to a variable where it is")
        inner = outer
    if any(isinstance(part, ast.NamedExpr) for part in ast.walk(statement)):
        raise NotProven("the statement binds a name in the middle; do that in a statement of its own")


_SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class _Leaves:
    """What an expression is made of, in the function around a statement: `numbers` by their text."""

    def __init__(self, site: Site, statement: ast.stmt) -> None:
        self._site, self._statement = site, statement
        self.numbers: dict[str, ast.expr] = {}

    def whole(self, node: ast.expr) -> ast.expr:
        """The expression with what the statement in front bound to a name in the place of that name."""
        body, position = self._site.place.blocks[-1]
        before = body[position - 1] if position else None
        target = only_target(before)
        if not isinstance(target, ast.Name) or not isinstance(before, ast.Assign):
            return node
        called = (self._site.resolve(before.value.func) or "") if isinstance(before.value, ast.Call) else ""
        own = mentions(before.value, target.id) or not mentions(node, target.id)
        if own or not called.startswith("numpy.") or self._is_used_elsewhere(target.id, before, node):
            return node
        value = before.value
        return exchanged(node, lambda part: value if is_name(part, target.id) else None)

    def _is_used_elsewhere(self, name: str, before: ast.stmt, node: ast.expr) -> bool:
        """True where more than `node` reads an array: what gets it may write into it, or give it back."""
        rebound = only_target(self._statement)
        if is_name(rebound, name) and node is getattr(self._statement, "value", None):
            return False
        return any(names_beyond(self._site.evaluator.scope.node, {name}, (before, node)))

    def kind(self, node: ast.expr) -> Kind | None:
        """A number, as far as one can tell, which the header asks for."""
        if not isinstance(node, (ast.Name, ast.Attribute)) and not is_size(node) and not _is_element(node):
            return None
        root = root_of(node.func if isinstance(node, ast.Call) else node) or ""
        if not self._site.evaluator.scope.is_local(root) and not self._is_setting(node):
            return None
        if self._site.value(node).kind is ValueKind.TENSOR or last_name(node) in ("dtype", "shape"):
            raise NotProven(f"`{short(node)}` is no number")
        parts = [part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        if any(is_loud_property(self._site.evaluator, each) for each in parts):
            raise NotProven(f"`{short(node)}` may do more than read")
        self.numbers.setdefault(ast.unparse(node), node)
        return Kind.NUMBER

    def _is_setting(self, node: ast.expr) -> bool:
        """True for a constant of the module."""
        fact = self._site.evaluator.scope.index.global_fact(self._site.summary.name, dotted(node) or "")
        return fact is not None and fact.kind is AttributeKind.CONSTANT

    def demand_numbers(self, whole: ast.expr) -> None:
        """NotProven where one stands in the place of an array, and nothing says that it is a number."""
        made = [part for part in ast.walk(whole) if isinstance(part, ast.Call)]
        makers = [part for part in made if (self._site.resolve(part.func) or "") in MAKERS | NUMBERS]
        sure = {ast.unparse(each) for call in makers for part in all_given(call) for each in ast.walk(part)}
        others = (ast.unparse(each) for call in made if call not in makers for each in call.args)
        for text in set(others) & self.numbers.keys() - sure:
            node = self.numbers[text]
            if not is_size(node) and not self._site.value(node).is_python:
                raise NotProven(f"cannot infer that `{text}` is a number; annotate it")


def _is_element(node: ast.expr) -> bool:
    """True for `pad[2]`."""
    return isinstance(node, ast.Subscript) and dotted(node.value) is not None and is_integer(node.slice)


def edit(site: Site, statement: ast.stmt, found: list[Computed]) -> Edit:
    """The statement with helpers that compute the arrays, in front of the author's. NotProven where names are taken."""
    demand_torch(site)
    parents = parents_in(statement)
    written: dict[int, tuple[ast.expr, str]] = {}
    helpers: list[Helper] = [CONSTANT]
    asked: dict[str, None] = {}
    for each in found:
        helper, given = _helper(site, each)
        helpers.append(helper)
        asked |= dict.fromkeys(each.numbers)
        called = f"{helper.name}({', '.join(given)})"
        written |= {id(node): (node, text) for node, text in _used(site, each, called, parents[id(each.node)])}
    conditions = ["torch.compiler.is_dynamo_compiling()"]
    if asked:
        conditions.append(f"_are_constants({', '.join(asked)})")
        helpers.append(ARE_CONSTANTS)
    line = line_of(site.but(written=written), statement)
    return two_paths(site, statement, conditions, [line], imports=("torch",), helpers=helpers)


def _used(site: Site, computed: Computed, called: str, parent: ast.AST) -> list[tuple[ast.expr, str]]:
    """What takes the place of what, where `called` gives the constant."""
    node, name = computed.node, site.resolve(parent.func) if isinstance(parent, ast.Call) else None
    if computed.kind is Kind.NUMBER:
        return [(node, _as_number(site, node, called))]
    if computed.kind is Kind.ARRAYS:
        return [(node, f"[each.clone().numpy() for each in {called}]")]
    copied = f"{called}[0].clone()"
    if isinstance(parent, ast.Call) and name == "torch.from_numpy":
        return [(parent, copied)]
    if isinstance(parent, ast.Call) and name in _MAKE_TENSORS and parent.args == [node]:
        if any(word.arg not in ("dtype", "device") for word in parent.keywords):
            raise NotProven("only the dtype and the device of the tensor may be given")
        # `torch.tensor` warns where it gets a tensor, as which Dynamo takes an array.
        return [(parent.func, "torch.as_tensor"), (node, copied)]
    if name is not None and name.startswith("torch.") and name.endswith("Tensor"):
        raise NotProven(f"Dynamo does not make a `{name}` of an array; write `torch.as_tensor`")
    return [(node, f"{copied}.numpy()")]


def _as_number(site: Site, node: ast.expr, called: str) -> str:
    """The call of a helper, converted once more: Dynamo raises where code asks for the type of a constant itself."""
    name = site.resolve(node.func) or "" if isinstance(node, ast.Call) else ""
    kind = {"builtins.len": "int"}.get(name, name.removeprefix("builtins."))
    return f"{kind}({called})" if kind in ("int", "float", "bool") else called


_MAKE_TENSORS = ("torch.tensor", "torch.as_tensor")


def _helper(site: Site, computed: Computed) -> tuple[Helper, list[str]]:
    """The function that computes it, and what it is given: numbers, and functions of the project, guarded by Dynamo."""
    whole, names = computed.whole, _parameters(computed)
    called = next(part for part in walk_in_layers(whole) if isinstance(part, ast.Call))
    parameters, given = list(names.values()), list(names)
    if isinstance(whole, ast.Call) and _is_plain(site, computed):
        parameters, given = ["*given", "**named"], [site.text(each) for each in (*whole.args, *whole.keywords)]
        source = f"{site.text(whole.func)}(*given, **named)"
    else:
        inside = {text: ast.Name(name, ast.Load()) for text, name in names.items()}
        source = ast.unparse(exchanged(whole, lambda part: inside.get(ast.unparse(part))))
        source = source if isinstance(whole, (ast.Call, ast.Subscript)) else f"({source})"
    results = {
        Kind.ARRAYS: f'tuple(torch.as_tensor(each.copy("K"), device="cpu") for each in {source})',
        Kind.ARRAY: f'(torch.as_tensor({source}.copy("K"), device="cpu"),)',
        Kind.NUMBER: source,
    }
    name = f"_{last_name(called.func).strip('_')}_while_tracing"
    made = [
        f"@{CONSTANT.name}",
        f"def {name}({', '.join(parameters)}):",
        f'    """`{last_name(called.func)}` of numbers: torch.compile computes it while it traces, as a constant."""',
        f"    return {results[computed.kind]}",
    ]
    return Helper(name, "\n".join(made), since="compiler.assume_constant_result"), given


def _is_plain(site: Site, computed: Computed) -> bool:
    """True for a call of a library's function whose arguments are made of its numbers and literals alone."""
    own = {id(each) for each in computed.numbers.values()}
    inside = [part for each in all_given(computed.whole) for part in _parts(each, own)]  # type: ignore[arg-type]
    return (
        computed.whole is computed.node and not computed.functions and all(isinstance(each, _PLAIN) for each in inside)
    )


_PLAIN = (ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


def _parts(node: ast.AST, but: set[int]) -> Iterator[ast.AST]:
    """A node with all that is in it, without those left out."""
    if id(node) not in but:
        yield node
        for each in ast.iter_child_nodes(node):
            yield from _parts(each, but)


def _parameters(computed: Computed) -> dict[str, str]:
    """Names for the numbers and functions that an expression is made of, by their text."""
    taken = {part.id for part in ast.walk(computed.whole) if isinstance(part, ast.Name)}
    names: dict[str, str] = {}
    for text, node in {**{ast.unparse(each): each for each in computed.functions}, **computed.numbers}.items():
        stem = "size" if is_size(node) else last_name(node).strip("_") or "number"
        wishes = (stem if number == 1 else f"{stem}_{number}" for number in itertools.count(1))
        names[text] = next(
            each for each in wishes if each not in names.values() and (each == text or each not in taken)
        )
    return names
