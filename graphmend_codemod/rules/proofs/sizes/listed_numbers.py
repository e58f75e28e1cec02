"""Numbers that are read back out of a tensor which was made of a list, as by `torch.tensor(counts).max().item()`.

The list says the same. A compile path keeps a copy of it beside the tensor.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.scope import dotted, walk_in_layers
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS, torch_function
from graphmend_codemod.core.findings import Edit, Replacement
from graphmend_codemod.rules.framework.edits import line_of
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import own_definition
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks, blocks_of
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.numbers.compile_paths import in_front

_OF_LIST = {"max": "max({})", "amax": "max({})", "min": "min({})", "amin": "min({})", "sum": "sum({})"}
_WHOLE_LIST = "[*{}]"
_WHOLE = INT64_NAMES | {"torch.int32", "torch.int"}
_TYPED = frozenset({"torch.LongTensor", "torch.IntTensor"})
_BUILTINS = ("max", "min", "sum", "all", "isinstance", "type", "int", "list", "tuple")
_COMMENT = "# From the list that the tensor was made of: its numbers would have to be read back."
_COPIED = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.BinOp, ast.UnaryOp, ast.List, ast.Tuple,
    ast.ListComp, ast.comprehension, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip


class Read(NamedTuple):
    """A number that an expression reads out of the tensor `name`; `number` says it of a list."""

    node: ast.expr
    name: str
    number: str


class Listed(NamedTuple):
    """The statement that makes a tensor of numbers, and these; with `sized` a shape would make one of this shape."""

    statement: ast.Assign
    numbers: ast.expr
    sized: bool


def numbers_read(site: Site, statement: ast.stmt, value: ast.expr) -> list[tuple[Read, Listed]]:
    """The numbers that a statement reads out of tensors made of lists, the outermost of nested ones."""
    found: list[tuple[Read, Listed]] = []
    inside: set[int] = set()
    for part in walk_in_layers(value):
        read = _read(site, part) if isinstance(part, ast.expr) and id(part) not in inside else None
        listed = _listed(site, statement, read.name) if read is not None else None
        if read is None or listed is None:
            continue
        # Sizes alone are GM407's other form: the tensor itself becomes a list.
        if read.number != _WHOLE_LIST or isinstance(listed.numbers, ast.ListComp):
            found.append((read, listed))
            inside |= {id(each) for each in walk_in_layers(read.node)}
    return found


def _read(site: Site, node: ast.expr) -> Read | None:
    inner, whole = node, False
    while (below := number_read(site, inner, INTEGER_CAST)) is not None:
        inner, whole = below, True
    if not isinstance(inner, ast.Call) or inner.keywords:
        return None
    name, given = site.operation(inner)
    if len(given) != 1 or not isinstance(given[0], ast.Name):
        return None
    if name == "tolist" and not whole:
        return Read(node, given[0].id, _WHOLE_LIST)
    return Read(node, given[0].id, _OF_LIST[name]) if whole and name in _OF_LIST else None


def _listed(site: Site, statement: ast.stmt, name: str) -> Listed | None:
    function = site.evaluator.scope.node
    bound = Blocks(function).binding_before(statement, name)
    call = bound.value if bound is not None and len(bound.targets) == 1 else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or isinstance(call.args[0], ast.Starred):
        return None
    assert bound is not None
    qualified, words = site.resolve_global(call.func), {word.arg: word.value for word in call.keywords}
    if dotted(bound.targets[0]) != name or not words.keys() <= {"dtype", "device"}:
        return None
    if qualified not in _TYPED and torch_function(qualified) not in {each[6:] for each in TENSOR_MAKERS}:
        return None
    if "dtype" in words and site.resolve_global(words["dtype"]) not in _WHOLE:
        return None
    given = call.args[0]
    known = isinstance(given, (ast.Name, ast.Attribute, ast.List, ast.ListComp))
    return Listed(bound, given, qualified in _TYPED) if known else None


def from_lists(site: Site, statement: ast.stmt, found: list[tuple[Read, Listed]]) -> Edit:
    """The statement with what the lists say, under torch.compile; NotProven where the tensor may hold other numbers."""
    scope = site.evaluator.scope
    for each in _BUILTINS:
        if scope.is_local(each) or scope.resolve_global(each) not in {None, f"builtins.{each}"}:
            raise NotProven(name_taken(each))
    copies: dict[ast.stmt, str] = {}
    replacements: list[Replacement] = []
    conditions: list[str] = []
    written: dict[int, tuple[ast.expr, str]] = {}
    for read, listed in found:
        _demand_same(site, statement, read.name, listed)
        if listed.statement not in copies:
            copies[listed.statement] = copy = site.free_name(f"numbers_in_{read.name}")
            replacements.append(_copied(site, listed, copy))
            one = site.free_name("n", "number")
            # A bool, or a member of an enum, is an int for `isinstance`, and another one when it is read back.
            conditions += [copy, f"all(type({one}) is int for {one} in {copy})"]
        number = read.number.format(copies[listed.statement])
        written[id(read.node)] = (read.node, number)
        if number.startswith("sum("):
            conditions.append(f"-(2**63) <= {number} < 2**63")  # a tensor counts on from the smallest number
    line = line_of(site.but(written=written), statement)
    path = in_front(site, [statement], [site.compiling, *conditions], [_COMMENT, line])
    return Edit((*replacements, path), imports=site.imports)


def _copied(site: Site, listed: Listed, name: str) -> Replacement:
    numbers = listed.numbers
    for part in walk_in_layers(numbers):
        size = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "size"
        length = isinstance(part, ast.Call) and site.resolve_global(part.func) == "builtins.len"
        loud = isinstance(part, ast.Attribute) and is_loud_property(site.evaluator, part.attr)
        if loud or not (isinstance(part, _COPIED) or size or length):
            raise NotProven(f"`{short(numbers)}` would be computed twice; assign it to a variable first")
    text, asked = site.text(numbers), site.compiling
    if isinstance(numbers, (ast.Name, ast.Attribute)):
        kind = f"type({text}) in (list, tuple)" if listed.sized else f"isinstance({text}, (list, tuple))"
        text, asked = f"[*{text}]", f"{asked} and {kind}"
    line = f"{name} = {text} if {asked} else None"
    if site.is_too_long(listed.statement.col_offset + len(line)):
        line = f"{name} = (\n    {text}\n    if {asked}\n    else None\n)"
    return Replacement(site.span(listed.statement), (f"{line}\n", site.original(listed.statement)))


def _demand_same(site: Site, statement: ast.stmt, name: str, listed: Listed) -> None:
    """NotProven where the tensor may be written between the two statements."""
    calls = calls_in(site.source.text)
    function = own_definition(site)
    memory = SharedMemory(site, calls)
    try:
        blocks = blocks_of(calls, function)
        memory.demand_no_write(function, blocks, listed.statement, {name}, set(), [statement])
    except NotProven as reason:
        raise NotProven(str(reason).replace("the tensor or", f"`{name}` or")) from None
