"""Small questions about one node, asked of its tree and never of its text: what rules are written with."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameter_names, walk, walk_in_layers, walk_scope

_IDENTITY = frozenset({ast.Is, ast.IsNot, ast.In, ast.NotIn})


def same(one: ast.AST, other: ast.AST) -> bool:
    """True for two expressions with the same tree, wherever they stand."""
    return ast.dump(one) == ast.dump(other)


def is_name(node: ast.AST | None, name: str | None) -> TypeGuard[ast.Name]:
    """True for this name, read or bound."""
    return isinstance(node, ast.Name) and node.id == name


def reads_name(node: ast.AST | None, name: str) -> TypeGuard[ast.Name]:
    """True for this name where it is read."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def stores_name(node: ast.AST | None, name: str) -> TypeGuard[ast.Name]:
    """True for this name where it is bound or deleted."""
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def stored_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names among these nodes that are bound or deleted there."""
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def comprehended(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The variables of a comprehension wherever it has them, each with what it goes through; nothing for other nodes.

    They are its own: a variable of the function that has the name is neither read nor bound there.
    """
    outside: set[int] = set()
    for each in getattr(node, "generators", ()):
        outside.update(id(part) for part in walk(each.iter))  # evaluated before these variables are bound
        names = stored_names(walk(each.target))
        for part in walk(node):
            if isinstance(part, ast.Name) and part.id in names and id(part) not in outside:
                yield part, each.iter


def own_variables(nodes: Iterable[ast.AST]) -> set[int]:
    """The identities of the variables that comprehensions among these nodes have for themselves."""
    return {id(name) for node in nodes for name, _ in comprehended(node)}


def names_bound(node: ast.AST) -> set[str]:
    """The names that anything in a node binds."""
    return stored_names(walk(node))


def mentions(node: ast.AST, name: str | None) -> bool:
    """True where the name stands anywhere in a node, read or bound."""
    return any(is_name(part, name) for part in walk(node))


def rebinds(node: ast.AST, name: str) -> bool:
    """True where anything in a node binds or deletes the name."""
    return any(stores_name(part, name) for part in walk(node))


def all_names(node: ast.AST) -> set[str]:
    """The names in a node, read or bound."""
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def same_statement(root: ast.AST, node: ast.stmt) -> ast.stmt | None:
    """The statement at the place of `node` in the scope of `root`, in another tree of the same file."""
    inside = (each for each in walk_scope(root) if isinstance(each, ast.stmt))
    return next((each for each in inside if (each.lineno, each.col_offset) == (node.lineno, node.col_offset)), None)


def is_within(part: ast.AST, whole: ast.AST) -> bool:
    """True for a node itself and for each node below it."""
    return any(part is each for each in walk(whole))


def is_attribute(node: ast.AST | None, owner: str | None, attribute: str | None = None) -> TypeGuard[ast.Attribute]:
    """True for `owner.attribute`; for any attribute of the name `owner` without `attribute`."""
    return isinstance(node, ast.Attribute) and is_name(node.value, owner) and attribute in (None, node.attr)


def is_not(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    """True for `not x`."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def operands_of(node: ast.expr, operator: type[ast.boolop]) -> list[ast.expr]:
    """The operands of `a and b` or `a or b`, whichever is asked for; any other expression alone."""
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, operator) else [node]


def sides_of(node: ast.AST) -> list[ast.expr]:
    """`a` and `b` for `a + b`, `a < b` and `a or b`, `a` for `-a`; nothing for other expressions."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    return node.values if isinstance(node, ast.BoolOp) else [node.operand] if isinstance(node, ast.UnaryOp) else []


def other_side(node: ast.BinOp, side: ast.AST) -> ast.expr:
    """The operand of `a + b` beside one of them."""
    return node.right if node.left is side else node.left


def all_given(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by position and by keyword; `*values` count as one."""
    return [*call.args, *(word.value for word in call.keywords)]


def owner_of(call: ast.Call) -> ast.expr | None:
    """`x` for `x.f(...)`; None for `f(...)`."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def has_stars(call: ast.Call) -> bool:
    """True for `f(*a)` and `f(**b)`."""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(word.arg is None for word in call.keywords)


def given_by_name(call: ast.Call, order: Iterable[str]) -> dict[str, ast.expr]:
    """What a call is given, by the names of its parameters in `order`; stars are not looked into."""
    found = dict(zip(order, call.args, strict=False))
    return found | {word.arg: word.value for word in call.keywords if word.arg is not None}


def elements_of(node: ast.expr) -> list[ast.expr]:
    """`a` and `b` for `a, b`, as targets and indices have them; any other expression alone."""
    return node.elts if isinstance(node, ast.Tuple) else [node]


def listed(node: ast.expr) -> list[ast.expr]:
    """`a` and `b` for `[a, b]` and `(a, b)`, as sizes and targets are given; any other expression alone."""
    return node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]


def only_target(statement: ast.AST | None) -> ast.expr | None:
    """`x` for `x = ...`; None for `x = y = ...` and for other statements."""
    return statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None


def targets_of(statement: ast.AST) -> list[ast.expr]:
    """What `x = ...`, `x = y = ...` and `x += ...` bind or write; nothing for other statements."""
    if isinstance(statement, ast.AugAssign):
        return [statement.target]
    return statement.targets if isinstance(statement, ast.Assign) else []


def binds_alone(statement: ast.AST | None, name: str) -> bool:
    """True for `name = ...`, without other targets."""
    return is_name(only_target(statement), name)


def is_target(statement: ast.Assign, name: str) -> bool:
    """True for `name = ...` and `name = y = ...`, not for `name, y = ...`."""
    return any(is_name(target, name) for target in statement.targets)


def name_imported(alias: ast.alias) -> str:
    """The name that an import binds: `a` for `import a.b`."""
    return alias.asname or alias.name.partition(".")[0]


def positional_names(function: FunctionNode | ast.Lambda) -> list[str]:
    """The names of the parameters that arguments are given to by position."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def values_given(function: FunctionNode, name: str) -> list[ast.expr | None]:
    """What a function gives a local name, one by one; None for what is not a plain assignment of the name itself."""
    nodes = walk_scope(function)
    plain = {id(target): node.value for node in nodes if isinstance(node, ast.Assign) for target in node.targets}
    found = [plain.get(id(part)) for part in nodes if stores_name(part, name)]
    return [None, *found] if name in parameter_names(function) else found


def values_assigned(function: FunctionNode, name: str) -> list[ast.expr]:
    """What plain assignments of a function give a local name, whatever else binds it."""
    return [value for value in values_given(function, name) if value is not None]


def names_beyond(root: ast.AST, names: Iterable[str], inside: Iterable[ast.AST]) -> Iterator[ast.Name]:
    """Where these names stand below `root`, but for what is below the nodes `inside`."""
    known = {id(part) for each in inside for part in walk(each)}
    for part in walk_in_layers(root):
        if isinstance(part, ast.Name) and part.id in names and id(part) not in known:
            yield part


def without_minus(node: ast.expr) -> ast.expr:
    """`x` for `-x`; any other expression as it is."""
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node


def is_integer(node: ast.AST | None) -> bool:
    """True for an integer that is written out, also with a minus."""
    return type(written_number(node)) is int


def written_integer(node: ast.AST | None) -> int | None:
    """The integer that is written out, also with a minus; None for anything else."""
    number = written_number(node)
    return number if isinstance(number, int) else None


def assigned_pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target of an assignment of any kind, with what the statement or `:=` gives it."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value


def element_pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a` with `x` and `b` with `y` for `a, b = x, y`; the target with the value for any other assignment."""
    targets, values = (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [] for each in (target, value))
    several = len(targets) == len(values) > 0
    if not several or any(isinstance(each, ast.Starred) for each in (*targets, *values)):
        return [(target, value)]
    return [*zip(targets, values, strict=True)]


def pairs_of(statement: ast.stmt) -> dict[int, ast.expr]:
    """The target of each value of an assignment, and the value of each target, by id; also of `a, b = x, y`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return {}
    pairs = element_pairs(statement.targets[0], statement.value)
    return {id(one): other for pair in pairs for one, other in (pair, pair[::-1])}


def without_numbers(loop: ast.For | ast.comprehension) -> tuple[ast.expr, ast.expr]:
    """`layer` and `layers` for `for i, layer in enumerate(layers)`; target and iterated of any other loop."""
    target, iterated = loop.target, loop.iter
    counted = isinstance(iterated, ast.Call) and is_name(iterated.func, "enumerate") and iterated.args
    if counted and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return target.elts[1], iterated.args[0]  # type: ignore[attr-defined]
    return target, iterated


def written_number(node: ast.AST | None) -> int | float | None:
    """The number that is written out, also with a minus; None for anything else, and for a bool."""
    inner = without_minus(node) if isinstance(node, ast.expr) else None
    number = inner.value if isinstance(inner, ast.Constant) else None
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return None
    return number if inner is node else -number


def root_of(node: ast.AST, *, walrus: bool = False) -> str | None:
    """`x` for `x.layers[0].weight`; with `walrus`, also for `(y := x).weight`; None for any other."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) or (walrus and isinstance(node, ast.NamedExpr)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def is_none(node: ast.AST | None) -> bool:
    """True for `None`."""
    return isinstance(node, ast.Constant) and node.value is None


def asks_for_none(node: ast.AST, signs: tuple[type[ast.cmpop], ...] = (ast.Is, ast.IsNot)) -> TypeGuard[ast.Compare]:
    """True for `x is None` and `x is not None`, or for one of them."""
    plain = isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], signs)
    return plain and is_none(node.comparators[0])  # type: ignore[attr-defined]


def is_whole(node: ast.AST) -> bool:
    """True for `:`, all of a dimension."""
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def is_basic(part: ast.expr) -> bool:
    """True for `...`, an integer and a slice between integers, of the parts of an index."""
    if isinstance(part, ast.Slice):
        return all(bound is None or is_integer(bound) for bound in (part.lower, part.upper, part.step))
    return is_integer(part) or is_constant(part, ...)


def is_literal(node: ast.AST | None, value: object) -> TypeGuard[ast.Constant]:
    """True for this string or number, written out; `1`, `1.0` and `True` are alike."""
    return isinstance(node, ast.Constant) and node.value == value


def written_text(node: ast.AST | None) -> str | None:
    """The string that is written out; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_constant(node: ast.AST | None, value: object) -> bool:
    """True for this one of `True`, `False`, `None` and `...`."""
    return isinstance(node, ast.Constant) and node.value is value


def asks_identity(node: ast.Compare) -> bool:
    """True for `x is None` and `x in names`, whose value is a Python bool."""
    return not _IDENTITY.isdisjoint(map(type, node.ops))


def item_of(node: ast.AST) -> ast.expr | None:
    """`t` of `t.item()`."""
    if not isinstance(node, ast.Call) or node.args or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    return node.func.value if node.func.attr == "item" else None


def names_called(nodes: Iterable[ast.AST]) -> list[str]:
    """`f` for each `f(...)` among these nodes."""
    return [each.func.id for each in nodes if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]


def last_name(node: ast.AST) -> str:
    """`append` for `self.layers.append`, `print` for `print`, an empty string for what has no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def counted(node: ast.expr) -> str | None:
    """`x` for `len(x)`, `x.shape[0]` and `x.size(0)`, where `x` is a name."""
    whole: ast.expr | None = None
    if (asked := size_asked(node)) is not None:
        whole = asked[0] if written_integer(asked[1]) == 0 else None
    elif isinstance(node, ast.Call) and is_name(node.func, "len") and len(node.args) == 1 and not node.keywords:
        whole = node.args[0]
    return whole.id if isinstance(whole, ast.Name) else None


def size_asked(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """`x` and `1` for `x.shape[1]` and `x.size(1)`; None for anything else."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return node.value.value, node.slice
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "size":
        return None
    return (node.func.value, node.args[0]) if len(node.args) == 1 and not node.keywords else None


def expanded_like(node: ast.expr | None) -> ast.expr | None:
    """`x` for `mask.expand(x.shape)`, `mask.expand(x.size())` and `mask.expand_as(x)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if len(node.args) != 1 or node.keywords or node.func.attr not in {"expand", "expand_as"}:
        return None
    given = node.args[0]
    if node.func.attr == "expand_as":
        return given
    wanted = "shape"
    if isinstance(given, ast.Call) and not given.args and not given.keywords:
        given, wanted = given.func, "size"
    return given.value if isinstance(given, ast.Attribute) and given.attr == wanted else None


def asks_for_compiler(test: ast.expr) -> bool:
    """True for a test that calls `torch.compiler.is_compiling()`, or what packages name so."""
    calls = (part for part in walk_in_layers(test) if isinstance(part, ast.Call))
    return any(last_name(call.func) in torch_api.PREDICATES_ELSEWHERE for call in calls)


def holds_integers(annotation: ast.expr | None) -> bool:
    """True for `list[int]`, `Tuple[int, int]` and `List[Tuple[int, int]]`."""
    return _holds_integers(annotation, 2)


def _holds_integers(annotation: ast.expr | None, deepest: int) -> bool:
    if not isinstance(annotation, ast.Subscript) or deepest == 0:
        return False
    holder = (dotted(annotation.value) or "").removeprefix("typing.")
    listed = {"list", "List", "tuple", "Tuple", *(("Sequence",) if deepest > 1 else ())}
    first = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
    return holder in listed and (is_name(first, "int") or _holds_integers(first, deepest - 1))


def is_size(node: ast.AST) -> bool:
    """True for one size of a tensor: `x.shape[1]`, `x.size(1)`."""
    if isinstance(node, ast.Subscript):
        return is_shape(node.value) and not isinstance(node.slice, (ast.Slice, ast.Tuple))
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "size"
    return called and len(node.args) + len(node.keywords) == 1  # type: ignore[attr-defined]


def is_shape(node: ast.AST) -> bool:
    """True for several of them: `x.shape`, `x.size()`, and slices of these."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_shape(node.value)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args and not node.keywords
    return isinstance(node, ast.Attribute) and node.attr == "shape"
