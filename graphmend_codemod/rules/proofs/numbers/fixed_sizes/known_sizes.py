"""Operators whose result has a size that the source tells, although torch has to read a tensor for it.

The rows that `repeat_interleave` makes are as many as the list says that its counts were built from,
`arange(n).tolist()` is a range, and a mask built by `torch.eye` chooses the diagonal, or all but the diagonal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import calls_in, tree_of
from graphmend_codemod.analysis.patterns import (
    binds_alone,
    is_integer,
    is_name,
    is_not,
    is_within,
    last_name,
    names_beyond,
    same,
    stores_name,
)
from graphmend_codemod.analysis.scope import dotted, parameter_names, parents_in, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.values import BOOL
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import own_definition
from graphmend_codemod.rules.proofs.memory.reaching_definitions import Blocks
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm
from graphmend_codemod.rules.proofs.numbers.integers.list_changes import ListChanges

_SPELLED = ("isinstance", "type", "int", "len", "list", "tuple", "range", "sum", "all")
_BUILDERS = frozenset({"tensor", "as_tensor"})
_LONG = frozenset({"torch.int64", "torch.long"})
_WHOLE = _LONG | {"torch.int32", "torch.int"}
_MOVES = frozenset("bool to type float double half long int byte cuda cpu clone detach contiguous".split())
_KEPT = frozenset("shape dtype device dim size numel ndim sum any all nonzero".split())
_READERS = frozenset(
    "masked_fill masked_fill_ masked_select where logical_not count_nonzero nonzero argwhere _counted_places".split()
)
_NEGATED = {("Eq", 0): True, ("NotEq", 1): True, ("Lt", 1): True}
_SAME = {("Eq", 1): False, ("NotEq", 0): False, ("Gt", 0): False, ("Gt", 0.5): False}


def of_known_size(site: Site, statement: ast.stmt, node: ast.expr) -> FixedForm | None:
    """What takes the place of such an operator; None for any other, NotProven where it is one and no form is known."""
    words = site.evaluator.scope.outline.words
    found = selected(site, statement, node) if "eye" in words else None
    if found is None and isinstance(node, ast.Call):
        from graphmend_codemod.rules.proofs.numbers.fixed_sizes.met_sizes import (
            repeated_to,  # it asks for what is in this file
        )

        found = repeated(site, node) or counted(site, node) or repeated_to(site, statement, node)
        if found is None and "einsum" in words:
            from graphmend_codemod.rules.proofs.numbers.fixed_sizes.met_in_einsum import repeated_in_einsum

            found = repeated_in_einsum(site, statement, node)
    if found is not None and not all(is_builtin(site, each) for each in _SPELLED):
        raise NotProven("a name of Python's own means something else in this module")
    return found


def is_builtin(site: Site, name: str) -> bool:
    """True where a name means what it means in Python."""
    return site.resolve(ast.Name(name, ast.Load())) in {None, f"builtins.{name}"} and not site.evaluator.scope.is_local(
        name
    )


# counts


def repeated(site: Site, call: ast.Call) -> FixedForm | None:
    """`repeat_interleave(x, torch.tensor(counts), output_size=sum(counts))`; None for any other."""
    name, given = site.operation(call)
    if (
        name != "repeat_interleave"
        or len(given) < 2
        or any(word.arg in {"output_size", None} for word in call.keywords)
    ):
        return None
    built = given[1]
    source = _list_of(site, built)
    if source is None or dotted(source) is None or is_bound_inside(site, call, dotted(source) or ""):
        return None
    text = site.text(source) if hasattr(source, "lineno") else dotted(source)
    # A single count, which may be that of several rows, needs no tensor.
    single = site.but(written={id(built): (built, f"{text}[0]")}).text(call)
    arguments = [*map(site.text, call.args), *map(site.text, call.keywords), f"output_size=sum({text})"]
    several = f"{site.text(call.func)}({', '.join(arguments)})"
    conditions = (
        f"isinstance({text}, (list, tuple))",
        f"len({text}) > 0",
        f"all(type(each) is int and each >= 0 for each in {text})",
    )
    return FixedForm(call, f"({several} if len({text}) > 1 else {single})", conditions, sized=True)


def _list_of(site: Site, built: ast.expr) -> ast.expr | None:
    """The list of which a tensor is made, here or in a statement before: `counts` of `torch.tensor(counts)`."""
    if isinstance(built, ast.Name):
        value = site.place.env.get(built.id)
        stores = [part for part in walk_scope(site.evaluator.scope.node) if is_name(part, built.id)]
        if value is None or value.built_from is None or sum(not isinstance(each.ctx, ast.Load) for each in stores) != 1:
            return None
        changes = ListChanges(calls_in(site.source.text), site.evaluator.scope.resolve_global)
        changed = changes.before(own_definition(site), built.id, value.built_from, site.place.statement.lineno - 1)
        return ast.Name(value.built_from, ast.Load()) if changed is None else None
    if not isinstance(built, ast.Call) or torch_api.torch_function(site.resolve(built.func)) not in _BUILDERS:
        return None
    if any(word.arg != "device" and site.resolve(word.value) not in _WHOLE for word in built.keywords):
        return None
    return built.args[0] if built.args else None


def is_bound_inside(site: Site, node: ast.expr, name: str) -> bool:
    """True where the name belongs to a comprehension or lambda around a node, or to a walrus in its statement."""
    root = name.partition(".")[0]
    for part in walk_in_layers(site.place.statement):
        if isinstance(part, ast.NamedExpr) and part.target.id == root:
            return True
        if isinstance(part, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)) and is_within(
            node, part
        ):
            return True
    return False


# ranges


def counted(site: Site, call: ast.Call) -> FixedForm | None:
    """`list(range(2, x.dim()))` for `torch.arange(2, x.dim()).tolist()`; None for any other."""
    made = call.func.value if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords else None
    if last_name(call.func) != "tolist" or not isinstance(made, ast.Call):
        return None
    if torch_api.torch_function(site.resolve(made.func)) != "arange" or not 1 <= len(made.args) <= 2:
        return None
    words = {word.arg: word.value for word in made.keywords}
    if words.keys() - {"dtype", "device"} or ("dtype" in words and site.resolve(words["dtype"]) not in _WHOLE):
        return None
    leaves = [leaf for argument in made.args for leaf in _leaves(site, argument)]
    if any(is_bound_inside(site, call, leaf) for leaf in leaves):
        return None
    ends = [site.text(argument) for argument in made.args]
    asked = [f"isinstance({leaf}, int)" for leaf in dict.fromkeys(leaves)]
    asked.append(f"{ends[0]} <= {ends[1]}" if len(ends) == 2 else f"{ends[0]} >= 0")
    if "dtype" in words and site.resolve(words["dtype"]) not in _LONG:
        asked.append(f"{ends[-1]} <= 2**31")
        asked += [f"{ends[0]} >= -(2**31)"] if len(ends) == 2 else []
    return FixedForm(call, f"list(range({', '.join(ends)}))", tuple(asked), sized=True)


def _leaves(site: Site, node: ast.expr) -> Iterator[str]:
    """What has to hold integers for a sum to be one; NotProven for sizes, and for what may have effects."""
    if is_integer(node):
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)):
        yield from _leaves(site, node.left)
        yield from _leaves(site, node.right)
    elif isinstance(node, ast.Call) and _counts_dimensions(site, node):
        return
    elif isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) is not None:
        yield site.text(node)
    else:
        raise NotProven(f"`{short(node)}` may be a size; torch.compile would recompile for every new value")


def _counts_dimensions(site: Site, node: ast.Call) -> bool:
    """True for `x.dim()`, `len(x.shape)`, `len(names)`."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "dim" and not node.args and dotted(node.func) is not None
    given = node.args[0] if len(node.args) == 1 else None
    known = site.resolve(node.func) == "builtins.len" and given is not None and dotted(given) is not None
    return known and given is not None and not site.value(given).is_tensor


# diagonals


def selected(site: Site, statement: ast.stmt, node: ast.expr) -> FixedForm | None:
    """`x.diagonal().clone()` for `x[mask]` where `mask = torch.eye(n).bool()`, and the rest for `x[~mask]`."""
    tensor, mask = _masked(site, node)
    if tensor is None or mask is None:
        return None
    masks = _Masks(site, statement)
    chosen = masks.diagonal(mask)
    if chosen is None:
        return None
    if dotted(tensor) is None:
        raise NotProven(f"`{short(tensor)}` would be computed twice; assign it to a variable first")
    x, named = site.text(tensor), mask.operand if isinstance(mask, ast.UnaryOp) else mask
    if dotted(named) is None:
        raise NotProven(f"`{short(named)}` would be computed twice; assign it to a variable first")
    m = site.text(named)
    if any(is_bound_inside(site, node, each) for each in (x, m)):
        return None
    torch = site.torch
    conditions = [f"isinstance({x}, {torch}.Tensor)", f"isinstance({m}, {torch}.Tensor)", f"{m}.dtype == {torch}.bool"]
    conditions += [f"{m}.dim() == 2", f"{x}.shape == {m}.shape", *masks.conditions]
    if chosen:
        return FixedForm(node, f"{x}.diagonal().clone()", tuple(conditions), sized=True)
    n = f"{x}.size(0)"
    rest = f"{x}.flatten()[1:].reshape({n} - 1, {n} + 1)[:, :-1].reshape(-1).clone()"
    return FixedForm(node, rest, (*conditions, f"{x}.numel() > 0"), sized=True)


def _masked(site: Site, node: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """`x` and `m` for `x[m]` and `x.masked_select(m)`."""
    if isinstance(node, ast.Subscript):
        return node.value, None if isinstance(node.slice, (ast.Tuple, ast.Slice, ast.Constant)) else node.slice
    if isinstance(node, ast.Call) and not node.keywords:
        name, given = site.operation(node)
        if name == "masked_select" and len(given) == 2:
            return given[0], given[1]
    return None, None


class _Masks:
    """What the masks of a function choose, before a statement; `conditions` say which branch made one."""

    def __init__(self, site: Site, statement: ast.stmt) -> None:
        self.site = site
        self.function = site.evaluator.scope.node
        self.statement = statement
        self.conditions: list[str] = []

    def diagonal(self, node: ast.expr, depth: int = 0) -> bool | None:
        """True for a square mask (or zeros and ones) of the diagonal, False for all but it, None for any other."""
        if depth > 6:
            return None
        if isinstance(node, ast.Name):
            return self._named(node.id, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            # What is not bool, of which `~` is another number, is asked for where it is the mask itself.
            asked = depth == 0 and isinstance(node.operand, ast.Name)
            if not asked and self.site.value(node.operand).dtype != BOOL:
                return None
            return _not(self.diagonal(node.operand, depth + 1))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            one = isinstance(node.left, ast.Constant) and node.left.value in (1, 1.0) and node.left.value is not True
            return _not(self.diagonal(node.right, depth + 1)) if one else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.comparators[0], ast.Constant):
            key = (type(node.ops[0]).__name__, node.comparators[0].value)
            inner = self.diagonal(node.left, depth + 1) if key in _SAME or key in _NEGATED else None
            return _not(inner) if key in _NEGATED else inner
        return self._called(node, depth) if isinstance(node, ast.Call) else None

    def _called(self, node: ast.Call, depth: int) -> bool | None:
        name, given = self.site.operation(node)
        words = {word.arg for word in node.keywords}
        if name == "eye" and self.site.resolve(node.func) == "torch.eye":
            square = len(given) == 1 or (len(given) == 2 and same(given[0], given[1]))
            return True if square and words <= {"dtype", "device"} else None
        if name == "logical_not" and len(given) == 1 and not words:
            return _not(self.diagonal(given[0], depth + 1))
        owned = isinstance(node.func, ast.Attribute) and self.site.resolve(node.func) is None
        if owned and name in _MOVES and words <= {"dtype", "device", "non_blocking"}:
            return self.diagonal(given[0], depth + 1)
        return None

    def _named(self, name: str, depth: int) -> bool | None:
        bound = [part for part in ast.walk(self.function) if stores_name(part, name)]
        if name in parameter_names(self.function) or not bound or len(bound) > 2:
            return None
        if not is_only_read(self.site, name):
            return None
        blocks = Blocks(self.function)
        before = blocks.binding_before(self.statement, name)
        if before is not None and len(before.targets) == 1 and isinstance(before.targets[0], ast.Name):
            return self._value(before, depth)
        return self._of_branch(name, depth)

    def _value(self, assignment: ast.Assign, depth: int) -> bool | None:
        masks = _Masks(self.site, assignment)
        found = masks.diagonal(assignment.value, depth + 1)
        self.conditions += masks.conditions
        return found

    def _of_branch(self, name: str, depth: int) -> bool | None:
        """What one branch of an `if` gives the name, where one operand of its test says that it ran."""
        for each in reversed(Blocks(self.function).preceding(self.statement)):
            if not isinstance(each, ast.If) or len(each.body) != 1 or len(each.orelse) != 1:
                continue
            for number, branch in enumerate((each.body[0], each.orelse[0])):
                if not isinstance(branch, ast.Assign) or not binds_alone(branch, name):
                    break
                asked = _decides(self.function, each.test, outcome=not number)
                if asked is None or not (self._only_computes(each) or stays(self.site, asked.removeprefix("not "))):
                    continue
                found = self._value(branch, depth)
                if found is not None:
                    self.conditions.append(asked)
                    return found
        return None

    def _only_computes(self, branch: ast.If) -> bool:
        """True where nothing between a branch and the statement calls what may change an attribute."""
        first, last = branch.end_lineno or 0, self.statement.lineno
        between = (part for part in walk_scope(self.function) if first < getattr(part, "lineno", 0) < last)
        return all(self._is_of_torch(part) for part in between if isinstance(part, ast.Call))

    def _is_of_torch(self, call: ast.Call) -> bool:
        name = self.site.resolve(call.func)
        if name is None and isinstance(call.func, ast.Attribute):
            return self.site.value(call.func.value).is_tensor
        return name is not None and name.startswith(("torch.", "builtins."))


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


def _decides(function: ast.AST, test: ast.expr, *, outcome: bool) -> str | None:
    """A condition on an attribute or name that stays, under which a test certainly has this outcome."""
    operand, wanted = test, outcome
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) is outcome:
        operand = test.values[0]
    while is_not(operand):
        operand, wanted = operand.operand, not wanted
    name = dotted(operand) if isinstance(operand, (ast.Name, ast.Attribute)) else None
    if name is None:
        return None
    for part in walk_scope(function):
        if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load) and dotted(part) == name:
            return None
    return name if wanted else f"not {name}"


def stays(site: Site, name: str) -> bool:
    """True for an attribute of the instance that the file sets in constructors alone, whatever is called meanwhile."""
    owner, _, attribute = name.rpartition(".")
    written = any(each.name == attribute for each in site.summary.writes)
    set_in = {
        function.name
        for function in ast.walk(tree_of(site.source.text))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for part in walk_scope(function)
        if isinstance(part, ast.Attribute) and part.attr == attribute and not isinstance(part.ctx, ast.Load)
    }
    return owner == "self" and not written and set_in <= {"__init__"}


def is_only_read(site: Site, name: str, but: Sequence[ast.AST] = (), depth: int = 0) -> bool:
    """False where a use of the name may change its tensor, or give it to somebody else who may; `but` may do that."""
    function = site.evaluator.scope.node
    parents, uses = parents_in(function), names_beyond(function, {name}, but)
    return depth < 4 and all(_reads(site, use, parents, depth) for use in uses if isinstance(use.ctx, ast.Load))


def _reads(site: Site, use: ast.expr, parents: dict[int, ast.AST], depth: int) -> bool:
    parent = parents[id(use)]
    if isinstance(parent, ast.Subscript):
        return parent.slice is use
    if isinstance(parent, ast.Call):
        return use in parent.args and last_name(parent.func) in _READERS and _is_torch_s(site, parent)
    if isinstance(parent, ast.Attribute) and parent.attr not in _KEPT:
        moved = parents[id(parent)]
        # It may be the same tensor, under another name.
        return parent.attr in _MOVES and isinstance(moved, ast.Call) and _reads(site, moved, parents, depth)
    if isinstance(parent, ast.Assign) and isinstance(use, ast.Call):
        names = [target.id for target in parent.targets if isinstance(target, ast.Name)]
        return len(names) == len(parent.targets) and all(is_only_read(site, each, depth=depth + 1) for each in names)
    if isinstance(parent, ast.UnaryOp):
        return not isinstance(parent.op, ast.UAdd)
    return isinstance(parent, (ast.BinOp, ast.Compare, ast.Attribute))


def _is_torch_s(site: Site, call: ast.Call) -> bool:
    """False for a function of the project that is called as torch's are: `self.where(mask)`."""
    if isinstance(call.func, ast.Name):
        return (
            last_name(call.func) == "_counted_places" or torch_api.torch_function(site.resolve(call.func)) is not None
        )
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    if torch_api.torch_function(site.resolve(call.func)) is not None or site.value(owner).is_tensor:
        return True
    other = site.value(owner).instance_of is not None or is_name(owner, site.evaluator.scope.self_name)
    return site.resolve(owner) is None and not other and last_name(call.func).startswith("masked_")
