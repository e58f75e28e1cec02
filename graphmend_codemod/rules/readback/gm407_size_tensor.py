"""size-tensor (GM407): sizes are put into a tensor and converted back to a list.

`shape = torch.cat([torch.as_tensor(x.shape[:1], dtype=torch.long), torch.as_tensor([2])])` and then
`x.view(shape.tolist())` break the graph for numbers that were Python integers all along. Under `torch.compile` they are
joined in a list. Eager mode joins them in the tensor, as before.

`torch.tensor(x.shape[1:]).tolist()` by way of a name is the simplest case of it.

It is done where the tensor is used for nothing else. A number that is in a tensor itself stays there: torch takes a
0-dim integer tensor for a size, and Dynamo knows the value of one that was made of a Python integer while it traces, as
long as no size in it is dynamic. The same holds for `torch.zeros(int(x.count))` where the only class of the file with
such an attribute makes a tensor of what it is given.

A number that is read back out of a tensor made of a list, `torch.tensor([len(x) for x in xs]).max().item()` by way of a
name, is taken from a copy of the list, which the compile path keeps beside the tensor. The tensor stays what it is for
all other uses; where it may be written in between, or the list holds anything but integers, its number is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import is_literal, is_name
from graphmend_codemod.analysis.scope import (
    FunctionNode,
    dotted,
    parameters,
    parents_in,
    walk,
    walk_in_layers,
    walk_scope,
)
from graphmend_codemod.analysis.speculation import is_loud_property, short
from graphmend_codemod.analysis.torch_api import INT64_NAMES, TENSOR_MAKERS, torch_function
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.rules.framework.edits import judged, line_of, path_beside, two_paths
from graphmend_codemod.rules.framework.reasons import NotProven, name_taken
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.memory.shared_memory import demand_no_write
from graphmend_codemod.rules.proofs.number_read import INTEGER_CAST, number_read
from graphmend_codemod.rules.proofs.sizes.joined_sizes import AS_SIZE, is_shape_here, listed_elements, made_of_sizes

rule = Rule(__name__, __doc__, title="keep sizes in a list instead of a tensor", contract=Contract(cost=Cost.NONE))

_FILLS = frozenset({"torch.zeros", "torch.ones", "torch.empty"})
_TAKES_SIZES = frozenset({"view", "reshape", "repeat", "expand", "new_zeros", "new_ones", "new_empty"})
_COMMENT = "# Sizes in a list: a tensor would have to be read back."
_HELPER = """\
def _as_size(number):
    \"\"\"The number as a size; torch takes a 0-dim integer tensor for one as it is.\"\"\"
    whole = {torch}.is_tensor(number) and number.dim() == 0 and number.dtype == {torch}.int64
    return number if whole else int(number)"""


@rule.on(ast.Assign, words=("tolist",))
def joined_sizes(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`shape = torch.cat([...])`, of which only `shape.tolist()` is used."""
    target, parts = node.targets[0], _joined(site, node.value)
    if parts is None or len(node.targets) != 1 or not isinstance(target, ast.Name):
        return None
    function = site.evaluator.scope.node
    parents = parents_in(function)
    uses = [part for part in walk_scope(function) if is_name(part, target.id)]
    read = [each for each in uses if _tolist(each, parents) is not None]
    if not read:
        return None
    message = f"puts sizes into a tensor and converts them back (device sync): `{target.id}.tolist()`"
    return judged(message, lambda: _edit(site, node, target, parts, parents))


@rule.on(ast.Assign, ast.Return, ast.Expr, words=("item", "int", "tolist"), here=True)
def number_of_a_list(site: Site, node: ast.Assign | ast.Return | ast.Expr) -> Diagnostic | None:
    """`n = lengths.max().item()` where `lengths = torch.tensor([len(x) for x in xs])`."""
    found = numbers_read(site, node, node.value) if node.value is not None else []
    if not found:
        return None
    message = (
        f"converts a tensor made of a list to a Python scalar (device sync): `{speculation.short(found[0][0].node)}`"
    )
    return judged(message, lambda: from_lists(site, node, found))


@rule.on(ast.Assign, candidate="value", words=("zeros", "ones", "empty"))
def counted(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`torch.zeros(int(x.count))` where a class of the module keeps `count` in a tensor."""
    call = node.value
    if not isinstance(call, ast.Call) or not call.args or site.resolve(call.func) not in _FILLS:
        return None
    size = call.args[0]
    inner = size.args[0] if isinstance(size, ast.Call) and len(size.args) == 1 and not size.keywords else None
    if not isinstance(inner, ast.Attribute) or site.resolve(size.func) != "builtins.int":  # type: ignore[attr-defined]
        return None
    owner = _keeps_tensor(site, inner.attr)
    if owner is None:
        return None
    message = (
        f"converts a size that `{owner}` stores in a tensor to a Python scalar (device sync): "
        f"`{speculation.short(size)}`"
    )
    changed = site.but(written={id(size): (size, f"{AS_SIZE}({site.text(inner)})")})
    edit = two_paths(site, node, [site.compiling], [changed.text(node)], helpers=_helpers(site))
    return Diagnostic(message, edit=edit)


def _joined(site: Site, node: ast.expr) -> list[ast.expr] | None:
    """What `torch.cat` joins along its first dimension, or the one tensor that is made of sizes."""
    made = made_of_sizes(site, node)
    if made is not None:
        return [node] if isinstance(made, (ast.List, ast.Tuple)) or is_shape_here(site, made) else None
    if not isinstance(node, ast.Call) or site.resolve(node.func) != "torch.cat" or not 1 <= len(node.args) <= 2:
        return None
    dimension = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "dim")]
    first = all(is_literal(each, 0) for each in dimension)
    if (
        not first
        or any(word.arg != "dim" for word in node.keywords)
        or not isinstance(node.args[0], (ast.List, ast.Tuple))
    ):
        return None
    return node.args[0].elts


def _tolist(name: ast.Name, parents: dict[int, ast.AST]) -> ast.Call | None:
    """The call of `name.tolist()`."""
    method = parents.get(id(name))
    call = parents.get(id(method))
    called = isinstance(method, ast.Attribute) and method.attr == "tolist" and isinstance(call, ast.Call)
    return call if called and not call.args and not call.keywords else None  # type: ignore[union-attr, return-value]


def _edit(site: Site, node: ast.Assign, target: ast.Name, parts: list[ast.expr], parents: dict[int, ast.AST]) -> Edit:
    elements = ", ".join(listed_elements(site, node, part) for part in parts)
    helpers = _helpers(site) if AS_SIZE in elements else ()
    statements: list[ast.stmt] = [node]
    paths = [_COMMENT, f"{target.id} = [{elements}]"]
    replacements = []
    following = site.following()[:1]
    reading: dict[ast.stmt, list[ast.Call]] = {}
    for call, statement in _reads(site.evaluator.scope.node, target, parents):
        reading.setdefault(statement, []).append(call)
    for statement, found in reading.items():
        path = _use(site, target.id, found, statement, parents)
        if statement in following and len(statements) == 1:
            statements.append(statement)
            paths.append(path)
        else:
            replacements.append(path_beside(site, statement, [site.compiling], [path]))
    both = path_beside(site, statements, [site.compiling], paths)
    return Edit((both, *replacements), imports=site.imports, helpers=helpers)


def _reads(
    function: FunctionNode, target: ast.Name, parents: dict[int, ast.AST]
) -> Iterator[tuple[ast.Call, ast.stmt]]:
    """The calls of `tolist` and their statements; NotProven if the name is used for anything else."""
    if any(each.arg == target.id for each in parameters(function)):
        raise NotProven(f"`{target.id}` is also a parameter")
    nested = [part for part in walk(function) if is_name(part, target.id)]
    scope = {id(part) for part in walk_scope(function)}
    for name in nested:
        if name is target:
            continue
        if not isinstance(name.ctx, ast.Load) or id(name) not in scope:
            raise NotProven(f"`{target.id}` is also bound or used elsewhere")
        call = _tolist(name, parents)
        if call is None:
            raise NotProven(f"`{speculation.short(parents[id(name)])}` needs a Tensor")
        statement: ast.AST = call
        while not isinstance(statement, ast.stmt):
            statement = parents[id(statement)]
        yield call, statement


def _use(site: Site, name: str, found: list[ast.Call], statement: ast.stmt, parents: dict[int, ast.AST]) -> str:
    """The statement that takes the sizes, with the list."""
    written: dict[int, tuple[ast.expr, str]] = {}
    for call in found:
        if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
            raise NotProven(
                f"`{speculation.short(call)}` is in the header of a statement; assign it to a variable first"
            )
        parent = parents[id(call)]
        whole: ast.expr = call
        if isinstance(parent, ast.comprehension):
            whole = _integers(site, parents[id(parent)], statement, parents)
        elif not _is_size(call, parents):
            raise NotProven(f"`{speculation.short(parent)}` may need a Python number")
        written[id(whole)] = (whole, name)
    return site.but(written=written).text(statement)


def _integers(site: Site, loop: ast.AST, statement: ast.stmt, parents: dict[int, ast.AST]) -> ast.expr:
    """`[int(x) for x in shape.tolist()]`, kept in a name that is used for sizes alone."""
    kept = statement.targets[0] if isinstance(statement, ast.Assign) else None
    alone = isinstance(loop, ast.ListComp) and _is_list_of_integers(loop) and loop is statement.value  # type: ignore[attr-defined]
    if not alone or not isinstance(loop, ast.ListComp) or not isinstance(kept, ast.Name):
        raise NotProven(f"`{speculation.short(loop)}` may need Python numbers")
    for part in walk(site.evaluator.scope.node):
        if is_name(part, kept.id) and part is not kept and not _is_size(part, parents):
            raise NotProven(f"`{kept.id}` may be needed as Python numbers")
    return loop


def _is_size(node: ast.expr, parents: dict[int, ast.AST]) -> bool:
    """True for the only argument of a method that takes sizes."""
    call = parents.get(id(node))
    if not isinstance(call, ast.Call) or call.args != [node] or not isinstance(call.func, ast.Attribute):
        return False
    return call.func.attr in _TAKES_SIZES


def _is_list_of_integers(node: ast.ListComp) -> bool:
    """`[int(x) for x in ...]`."""
    each, loop = node.elt, node.generators[0]
    if len(node.generators) != 1 or loop.ifs or not isinstance(each, ast.Call) or dotted(each.func) != "int":
        return False
    return isinstance(loop.target, ast.Name) and [dotted(part) for part in each.args] == [loop.target.id]


def _keeps_tensor(site: Site, attribute: str) -> str | None:
    """The only class of the module with such an attribute, if its constructor makes a tensor of an argument."""
    stores = [
        (each, part)
        for each in site.source.parse().body
        for part in walk(each)
        if isinstance(part, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == attribute for target in part.targets)
    ]
    if len(stores) != 1:
        return None
    owner, statement = stores[0]
    if not isinstance(owner, ast.ClassDef):
        return None
    made = made_of_sizes(site, statement.value)
    return owner.name if isinstance(made, ast.Name) else None


def _helpers(site: Site) -> tuple[Helper, ...]:
    return (Helper(AS_SIZE, _HELPER.format(torch=site.torch), after=(site.torch or "torch",)),)


# Numbers that are read back out of a tensor which was made of a list, as by `torch.tensor(counts).max().item()`

_OF_LIST = {"max": "max({})", "amax": "max({})", "min": "min({})", "amin": "min({})", "sum": "sum({})"}
_WHOLE_LIST = "[*{}]"
_WHOLE = INT64_NAMES | {"torch.int32", "torch.int"}
_TYPED = frozenset({"torch.LongTensor", "torch.IntTensor"})
_BUILTINS = ("max", "min", "sum", "all", "isinstance", "type", "int", "list", "tuple")
_FROM_LIST = "# From the list that the tensor was made of: its numbers would have to be read back."
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
    path = path_beside(site, statement, [site.compiling, *conditions], [_FROM_LIST, line])
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
    try:
        demand_no_write(site, listed.statement, {name}, set(), [statement])
    except NotProven as reason:
        raise NotProven(str(reason).replace("the tensor or", f"`{name}` or")) from None
