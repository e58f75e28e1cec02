"""arange-end-readback (GM405): `positions[-1] + 1` is used as a size, although `positions` comes from `torch.arange`.

Read out of the tensor, the size breaks the graph and waits for the device; but a function that has just made the tensor
gave that number to `torch.arange`. Under `torch.compile` the number is taken. It is kept in a name beside the tensor,
and handed to a function of the module that uses it as a size, as one more argument with a default. Eager mode reads it
out of the tensor and makes the same calls, as before. Where somebody gives the positions, the original stays.

Under `torch.compile` an empty range has the size 0 instead of an IndexError. A subclass that replaces the method is not
given the new argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import all_names, is_name, is_none, is_size, same, stores_name
from graphmend_codemod.analysis.scope import FunctionNode, walk_in_layers, walk_scope
from graphmend_codemod.core.findings import CompilePath, Edit, Original, Replacement
from graphmend_codemod.rules.framework.edits import judged, path_beside
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link, own_definition
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory
from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses

# `if positions is None: positions = torch.arange(n)`: what is known of the numbers below it


class Made(NamedTuple):
    """`if positions is None: ... positions = torch.arange(end)`."""

    name: str
    node: ast.If
    assignment: ast.Assign
    end: ast.expr


def asked_for_none(node: ast.If) -> str | None:
    """`x` for `if x is None`."""
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Is) or not isinstance(test.left, ast.Name):
        return None
    other = test.comparators[0]
    return test.left.id if is_none(other) else None


def made_where_none(site: Site, node: ast.If) -> Made | None:
    """The range that a name gets where it is None, if nothing binds the name again or writes into the range."""
    name = asked_for_none(node)
    function, last = site.evaluator.scope.node, node.body[-1]
    if name is None or node.orelse or node not in function.body or not isinstance(last, ast.Assign):
        return None
    call = last.value
    if not isinstance(call, ast.Call) or site.resolve(call.func) != "torch.arange":
        return None
    if last.targets != [each for each in changes(function, name) if each.lineno > node.lineno]:
        return None
    if not 1 <= len(call.args) <= 2 or any(word.arg not in {"device"} for word in call.keywords):
        return None
    end = call.args[-1]
    if len(call.args) == 2 and not _counts_on(call.args[0], end):
        return None
    return Made(name, node, last, end) if _is_simple(end) and any(map(is_size, walk_in_layers(end))) else None


def _counts_on(start: ast.expr, end: ast.expr) -> bool:
    """True for `arange(0, n)` and `arange(a, a + n)`, whose last number is one below the end whatever `a` is."""
    if isinstance(start, ast.Constant):
        return type(start.value) is int
    if not isinstance(end, ast.BinOp) or not isinstance(end.op, ast.Add):
        return False
    return same(start, end.left) or same(start, end.right)


def changes(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    """Where a function binds a name, or writes into what it holds."""
    for part in walk_scope(function):
        if stores_name(part, name):
            yield part
        elif isinstance(part, (ast.Subscript, ast.Attribute)) and getattr(part.value, "id", "") == name:
            in_place = isinstance(part, ast.Attribute) and part.attr.endswith("_") and part.attr != "requires_grad_"
            if in_place or not isinstance(part.ctx, ast.Load):
                yield part


def _is_simple(node: ast.expr) -> bool:
    """True for names and sizes, and what is added to them: nothing that costs or has an effect."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Sub)) and _is_simple(node.left) and _is_simple(node.right)
    if isinstance(node, ast.Call):
        return is_size(node) and all(isinstance(argument, ast.Constant) for argument in node.args)
    whole = isinstance(node, ast.Constant) and type(node.value) is int
    return whole or is_size(node) or isinstance(node, ast.Name)


rule = Rule(
    __name__,
    __doc__,
    title="keep the end of a torch.arange as a Python number",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="kept, but for an empty range, which has the size 0",
        compiled_state=ASKS_CLASSES,
    ),
)

_SIZES = frozenset({"torch.arange", "torch.full", "torch.zeros", "torch.ones", "torch.empty"})
_NAME = re.compile(r"(?<![\w.])\w+\Z")
_COMMENT = "# Known without reading it out of the tensor."


@rule.on(ast.If, words=("arange",), when=lambda node: asked_for_none(node) is not None)
def counted_positions(site: Site, node: ast.If) -> Diagnostic | None:
    """`if positions is None: positions = torch.arange(n)`, and a size `positions[-1] + 1` below it."""
    made = made_where_none(site, node) if _asks_for_ends(site.source.text) else None
    if made is None:
        return None
    function = site.evaluator.scope.node
    caller = Definition(site.function, function, site.function.rpartition(".")[0])
    own = [each for each in _ends(function, made.name) if each.lineno > node.lineno]
    uses = [(each, _kept_in(each)) for each in own if isinstance(each, ast.Assign)]
    here = [(each, name) for each, name in uses if name is not None and _is_size(site, function, name)]
    calls = calls_in(site.source.text)
    there = list(_handed(site, calls, caller, made))
    if not here and not there:
        return None
    message = f"reads a size back from `torch.arange` (device sync): `{made.name}[-1] + 1`"
    return judged(message, lambda: _edit(site, made, here, there, calls))


class _Call(NamedTuple):
    """A statement whose call hands the positions to a function that makes a size of them, or the size itself."""

    statement: ast.stmt
    call: ast.Call
    callee: Definition
    parameter: str
    uses: tuple[tuple[ast.Assign, str], ...]


@lru_cache(maxsize=4)
def _asks_for_ends(text: str) -> bool:
    """True where a text has `name[-1] + 1`, and not only `x.shape[-1] + 1`."""
    return any(_NAME.search(before[-100:]) for before in text.split("[-1] + 1")[:-1])


def _is_end(node: ast.AST, name: str) -> bool:
    """True for `name[-1] + 1`."""
    last = ast.Subscript(ast.Name(name, ast.Load()), ast.UnaryOp(ast.USub(), ast.Constant(1)), ast.Load())
    return isinstance(node, ast.expr) and ast.dump(node) == ast.dump(ast.BinOp(last, ast.Add(), ast.Constant(1)))


def _ends(function: FunctionNode, name: str) -> Iterator[ast.Assign]:
    """Assignments of `name[-1] + 1`."""
    for part in walk_scope(function):
        if isinstance(part, ast.Assign) and _is_end(part.value, name):
            yield part


def _kept_in(node: ast.Assign) -> str | None:
    target = node.targets[0]
    return target.id if len(node.targets) == 1 and isinstance(target, ast.Name) else None


def _is_size(site: Site, function: FunctionNode, name: str) -> bool:
    """True when a tensor is made in the size that `name` holds."""
    for part in walk_scope(function):
        if isinstance(part, ast.Call) and site.resolve_global(part.func) in _SIZES:
            for argument in part.args:
                sizes = argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]
                if any(is_name(size, name) for size in sizes):
                    return True
    return False


def _handed(site: Site, calls: ModuleCalls, caller: Definition, made: Made) -> Iterator[_Call]:
    """Calls below that hand the positions, or their end, to a function that uses the end as a size."""
    for statement in walk_scope(caller.node):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        callee = calls.callee(caller, call) if statement.lineno > made.node.lineno else None
        if callee is None or callee.node is caller.node:
            continue
        for parameter, given in callee.arguments(call).items():
            if is_name(given, made.name):
                found = [(each, _kept_in(each)) for each in _ends(callee.node, parameter)]
                uses = [(each, name) for each, name in found if name and _is_size(site, callee.node, name)]
                if uses and not any(changes(callee.node, parameter)):
                    yield _Call(statement, call, callee, parameter, tuple(uses))
            elif _is_end(given, made.name) and _is_size(site, callee.node, parameter):
                yield _Call(statement, call, callee, parameter, ())


def _edit(site: Site, made: Made, here: list[tuple[ast.Assign, str]], there: list[_Call], calls: ModuleCalls) -> Edit:
    end = site.free_name(f"end_of_{made.name}")
    if site.is_elif(made.node):
        raise NotProven("it is in an `elif`")
    own = own_definition(site)
    for _, name in here:
        _demand_number(site, own, name)
    readers = [*(each for each, _ in here), *(each.statement for each in there)]
    _demand_no_write(site, calls, own, made.node, made.name, readers)
    first, last = site.span(made.node.body[0]), site.span(made.assignment)
    body = Original(first.through(last))
    kept: str = f"\n    {end} = {site.text(made.end)}"
    if any(isinstance(part, ast.Name) for part in _summands(made.end)):
        # It may be a tensor, of which eager mode shall not compute a sum more than before.
        kept = CompilePath(f"\n    if {site.compiling}:\n        {end} = {site.text(made.end)}", [site.compiling])
    parts = (f"{end} = None\nif ", site.original(made.node.test), ":\n    ", body, kept)
    replacements = [Replacement(site.span(made.node), parts)]
    replacements += [_size(site, each, name, end) for each, name in here]
    for each in there:
        replacements += _call(site, calls, each, made.name, end)
    return Edit(tuple(replacements), imports=site.imports)


def _summands(node: ast.expr) -> list[ast.expr]:
    return [*_summands(node.left), *_summands(node.right)] if isinstance(node, ast.BinOp) else [node]


def _size(site: Site, node: ast.Assign, name: str, end: str) -> Replacement:
    return path_beside(site, node, [site.compiling, f"type({end}) is int"], [_COMMENT, f"{name} = {end}"])


def _call(site: Site, calls: ModuleCalls, found: _Call, name: str, end: str) -> Iterator[Replacement]:
    """The call with the size that is known; the function that takes it."""
    statement = found.statement
    assert isinstance(statement, ast.Assign)
    before = site.source.segment(site.span(statement)._replace(**_until(found.call)))
    if not found.uses:
        _demand_number(site, found.callee, found.parameter)
        texts = [_with_end(site, each, name, end) for each in found.call.args]
        texts += [_with_end(site, each, name, end) for each in found.call.keywords]
        conditions = [site.compiling, f"type({end}) is int"]
    else:
        texts = [*(site.text(each) for each in (*found.call.args, *found.call.keywords)), f"{end}={end}"]
        conditions = [site.compiling]
        yield _parameter(site, calls, found.callee, end)
        for each, local in found.uses:
            _demand_number(site, found.callee, local)
            line = found.callee.node.lineno
            head = ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0)
            _demand_no_write(site, calls, found.callee, head, found.parameter, [each])
            yield _size(site, each, local, end)
    certain, caller = CertainCalls(site, calls), own_definition(site)
    certain.follow(certain.start(), Link(caller, found.call, found.callee))
    if found.callee.owner and f"{certain.start().instance}." in f"{site.text(found.call.func)}.":
        certain.demand_same_method(certain.start(), found.callee)
    conditions += certain.conditions()
    path = site.call(f"{before}{site.text(found.call.func)}(", texts, deeper=1)
    yield path_beside(site, statement, conditions, [path])


def _until(call: ast.Call) -> dict[str, int]:
    return {"end_line": call.lineno, "end_column": call.col_offset}


def _with_end(site: Site, argument: ast.expr | ast.keyword, name: str, end: str) -> str:
    value = argument.value if isinstance(argument, ast.keyword) else argument
    if not _is_end(value, name):
        return site.text(argument)
    return f"{argument.arg}={end}" if isinstance(argument, ast.keyword) else end


def _parameter(site: Site, calls: ModuleCalls, callee: Definition, end: str) -> Replacement:
    """The new parameter behind the last one."""
    arguments = callee.node.args
    bound = all_names(callee.node)
    short = callee.qualname.rpartition(".")[2]
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults or not arguments.args:
        raise NotProven(f"`{callee.qualname}` has parameters other than plain positional ones")
    if callee.node.decorator_list or end in bound | {argument.arg for argument in arguments.args}:
        raise NotProven(f"`{callee.qualname}` cannot take another argument")
    others = [each for each in calls.definitions.values() if each.qualname.endswith(f".{short}")]
    if len([each for each in others if each.owner and each.owner in _family(calls, callee, each)]) > 1:
        raise NotProven(f"another class replaces `{callee.qualname}`")
    last = arguments.args[-1]
    return Replacement(site.span(last), (Original(site.span(last)), f", {end}=None"))


def _family(calls: ModuleCalls, callee: Definition, other: Definition) -> set[str]:
    """The class of `other` when what it calls by the name is `callee` or replaces it."""
    return {other.owner} if other is callee or calls.is_heir(other.owner, callee.owner) else set()


def _demand_number(site: Site, function: Definition, name: str) -> None:
    """NotProven when something is done with `name` that may need a Tensor."""
    uses = NumberUses(sure_calls(site), site.resolve_global, swapped=True).single(function, name)
    if uses.reason is None and uses.sure.links:
        uses.reason = f"`{name}` goes to another function"
    if uses.reason is not None:
        raise NotProven(uses.reason)


def _demand_no_write(
    site: Site, calls: ModuleCalls, function: Definition, node: ast.stmt, name: str, readers: list[ast.stmt]
) -> None:
    """NotProven when the positions may be written into between a statement and those that read their end."""
    try:
        SharedMemory(site, calls).demand_no_write(function, node, {name}, readers=readers)
    except NotProven as reason:
        raise NotProven(str(reason).replace("the tensor or", f"`{name}` or")) from None
