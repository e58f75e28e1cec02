"""Masks built from sizes and constants alone: how much they select is counted while Dynamo traces.

`negatives = similarity[~same].view(n, -1)` where `same` is made of `torch.eye(n)` and writes at constant places selects
as many elements as `n` says, whatever the data is. The statements that build the mask become a function of integers,
which torch.compile calls while it traces; then a search for the first, second, third, ... finds that many places.
(`torch.nonzero_static` would do on torch 2.7 and later; before, CUDA does not have it.)
"""

from __future__ import annotations

import ast

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.patterns import (
    all_names,
    is_name,
    is_size,
    is_within,
    last_name,
    mentions,
    rebinds,
    stores_name,
)
from graphmend_codemod.analysis.patterns import root_of as owner_of
from graphmend_codemod.analysis.scope import dotted, parameter_names, walk
from graphmend_codemod.analysis.speculation import reads_loudly, short
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.analysis.values import ValueKind
from graphmend_codemod.core.findings import Helper
from graphmend_codemod.rules.framework.edits import CONSTANT
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.fixed_forms import FixedForm
from graphmend_codemod.rules.proofs.numbers.fixed_sizes.known_sizes import is_bound_inside, is_builtin, is_only_read

_MAKES = torch_api.name_set(
    "eye ones zeros full arange tensor ones_like zeros_like full_like tril_indices triu_indices"
)
_COMPUTES = torch_api.name_set(
    """triu tril diag diag_embed block_diag kron logical_not logical_and logical_or logical_xor eq ne lt le gt ge cat
    stack view reshape flatten t transpose permute unsqueeze squeeze expand repeat repeat_interleave roll flip abs bool
    byte float int long to type clone contiguous bitwise_not"""
)
_WRITES = torch_api.name_set("fill_ zero_ fill_diagonal_ logical_not_ masked_fill_ triu_ tril_")
_TELLS = frozenset({"dtype", "diagonal", "dim", "as_tuple", "offset"})
_PLACES = frozenset({"nonzero", "argwhere"})
_SPELLED = ("isinstance", "int", "len", "range")
_PLACES_HELPER = '''
def _counted_places(mask, count):
    """Where a mask of which `count` elements are not zero has them, as `mask.nonzero()` says it."""
    wanted = {torch}.arange(1, count + 1, device=mask.device)
    flat = {torch}.searchsorted((mask != 0).flatten().cumsum(0), wanted)
    return {torch}.stack({torch}.unravel_index(flat, mask.shape), dim=1)
'''
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_PURE = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Tuple, ast.List, ast.Slice, ast.Subscript)


def selected_by_sizes(site: Site, statement: ast.stmt, node: ast.expr) -> FixedForm | None:
    """What takes the place of `x[mask]`, `mask.nonzero()` and `torch.where(mask)`; None for any other expression.

    NotProven where the mask is one of sizes alone, and something else is not known.
    """
    mask, tensor, split = _parts(site, node)
    if mask is None or not isinstance(root := _bare(mask), ast.Name):
        return None
    built = _Built(site, statement)
    if not built.makes(root.id):
        return None
    if tensor is not None and (is_within(root, tensor) or not built.tests()):
        return None
    built.demand_same(node)
    if not built.stays(node):
        raise NotProven(f"`{root.id}` or a size that it is made of may change before it is used")
    if not all(is_builtin(site, each) for each in _SPELLED):
        raise NotProven("a name of Python's own means something else in this module")
    helper, torch = _helper(site, built, mask), site.torch
    source = _PLACES_HELPER.strip("\n").replace("{torch}", torch or "torch")
    helpers = (Helper("_counted_places", source, shared=True, since="unravel_index"), CONSTANT, helper)
    given = ", ".join(f"len(range({each}))" for each in built.arguments)
    places = f"_counted_places({site.text(mask)}, {helper.name}({given}))"
    # `torch.export` runs a constant function as well, with tensors that hold nothing.
    conditions = [f"{torch}.compiler.is_dynamo_compiling()"]
    conditions += [part for each in built.arguments for part in (f"isinstance({each}, int)", f"{each} >= 0")]
    conditions.append(f"{root.id}.dim() > 0")
    if tensor is None:
        return FixedForm(node, f"{places}.unbind(1)" if split else places, tuple(conditions), True, helpers)
    x, name = site.text(tensor), root.id
    conditions += [f"isinstance({x}, {torch}.Tensor)", f"{name}.dtype == {torch}.bool"]
    conditions += [f"{x}.shape[: {name}.dim()] == {name}.shape", f"{x}.device == {name}.device"]
    return FixedForm(node, f"{site.operand(tensor)}[{places}.unbind(1)]", tuple(conditions), True, helpers)


def _parts(site: Site, node: ast.expr) -> tuple[ast.expr | None, ast.expr | None, bool]:
    """The mask, what it selects from, and whether its places are split by dimensions: `m`, `x` and False for `x[m]`."""
    if isinstance(node, ast.Subscript):
        plain = not isinstance(node.slice, (ast.Tuple, ast.Slice, ast.Constant))
        return (node.slice, node.value, False) if plain and dotted(node.value) is not None else (None, None, False)
    if not isinstance(node, ast.Call):
        return None, None, False
    name, given = site.operation(node)
    words = {word.arg: word.value for word in node.keywords}
    if name == "where" and len(given) == 1 and not words and site.resolve(node.func) is not None:
        return given[0], None, True
    if name not in _PLACES or len(given) != 1 or words.keys() - {"as_tuple"}:
        return None, None, False
    flag = words.get("as_tuple")
    if flag is not None and not isinstance(flag, ast.Constant):
        return None, None, False
    return given[0], None, flag is not None and bool(flag.value)


def root_of(node: ast.expr, *, called: bool = False) -> str | None:
    """The name that an expression begins with; with `called`, also of the call of a method."""
    while called and isinstance(node, ast.Call):
        node = node.func
    return owner_of(node)


def _bare(mask: ast.expr) -> ast.expr:
    return mask.operand if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert) else mask


class _Built:
    """The statements in front of one that build what a name holds there, and the integers they do it with.

    `arguments` are these integers as written, with the names that the counting function has for them.
    """

    def __init__(self, site: Site, statement: ast.stmt) -> None:
        self.site, self.statement = site, statement
        self.earlier = [each for body, position in site.place.blocks for each in body[:position]]
        self.names: set[str] = set()
        self.arguments: dict[str, str] = {}
        self.kept: list[ast.stmt] = []
        self.dropped: set[str] = set()

    def makes(self, name: str) -> bool:
        """Take in all statements that build `name`; False where not all of them are known to."""
        mine = [each for each in self.earlier if self._changes(each, name)]
        if name in parameter_names(self.site.evaluator.scope.node) or not mine or not self._creates(mine[0], name):
            return False
        self.names.add(name)
        self.kept = sorted({*self.kept, *mine}, key=lambda each: each.lineno)
        stores = _stores(self.site.evaluator.scope.node, name)
        if any(not any(is_within(part, each) for each in mine) for part in stores):
            return False
        for loop in self.site.place.parents:
            # Another round would find what this one wrote.
            if isinstance(loop, _LOOPS) and len({is_within(each, loop) for each in mine}) > 1:
                return False
        return all(map(self._follows_statement, mine))

    def tests(self) -> bool:
        """True where the tensor may hold bools: indexing with integers needs no size."""
        words = {last_name(part) for each in self.kept for part in ast.walk(each)}
        compared = any(isinstance(part, ast.Compare) for each in self.kept for part in ast.walk(each))
        return compared or any(word is not None and (word == "bool" or word.startswith("logical_")) for word in words)

    def demand_same(self, node: ast.expr) -> None:
        """NotProven where a name means something else at the expression, or an attribute may have changed since."""
        for text in (*self.arguments, *self.names):
            if is_bound_inside(self.site, node, text):
                raise NotProven(f"`{text}` is bound inside of the statement as well; manually choose another name")
        first = min(each.lineno for each in self.kept)
        for text in self.arguments:
            if "." in text and not is_size(ast.parse(text, mode="eval").body):
                reason = why_it_may_change(self.site, text, range(first, self.statement.lineno + 1))
                if reason is not None:
                    raise NotProven(reason)

    def stays(self, node: ast.expr) -> bool:
        """True where the integers are the same where the mask is built and used, and nothing else writes."""
        function = self.site.evaluator.scope.node
        last = None if self.site.place.in_loop else self.statement.lineno
        for text in self.arguments:
            name = root_of(ast.parse(text, mode="eval").body, called=True) or ""
            first = min(each.lineno for each in self.kept if mentions(each, name))
            stores = _stores(function, name)
            if any(first <= each.lineno and (last is None or each.lineno < last) for each in stores):
                return False
        return all(is_only_read(self.site, each, [*self.kept, node]) for each in self.names)

    def _creates(self, statement: ast.stmt, name: str) -> bool:
        """True for `name = torch.eye(n)`, and for what is computed of such a tensor that another name holds."""
        if not isinstance(statement, ast.Assign) or not all(is_name(each, name) for each in statement.targets):
            return False
        calls = (part for part in ast.walk(statement.value) if isinstance(part, ast.Call))
        if any(self.site.operation(call)[0] in _MAKES for call in calls):
            return True
        return any(self._is_made(each, statement) for each in all_names(statement.value) - {name})

    def _is_made(self, name: str, before: ast.stmt) -> bool:
        return any(self._creates(each, name) for each in self.earlier if each.lineno < before.lineno)

    def _changes(self, statement: ast.stmt, name: str) -> bool:
        """True where a statement binds the name, or writes into what it holds."""
        if rebinds(statement, name):
            return True
        for part in walk(statement):
            if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load) and root_of(part) == name:
                return True
            if isinstance(part, ast.Call) and last_name(part.func) in _WRITES and root_of(part.func) == name:
                return True
        return False

    def _follows_statement(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Assign):
            return all(map(self._follows_target, statement.targets)) and self.follows(statement.value)
        if isinstance(statement, ast.AugAssign):
            return self._follows_target(statement.target) and self.follows(statement.value)
        if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name) and not statement.orelse:
            steps = statement.iter
            if not isinstance(steps, ast.Call) or self.site.resolve(steps.func) != "builtins.range":
                return False
            self.names.add(statement.target.id)
            return all(map(self.follows, steps.args)) and all(map(self._follows_statement, statement.body))
        return False

    def _follows_target(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Name):
            return target.id in self.names
        return isinstance(target, ast.Subscript) and root_of(target) in self.names and self.follows(target)

    def follows(self, node: ast.AST) -> bool:
        """True for what integers, constants and tensors made of them decide."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._follows_name(node)
        if isinstance(node, (ast.Subscript, ast.Call)) and is_size(node):
            return self._takes(node)
        if isinstance(node, ast.Call):
            return self._follows_call(node)
        parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, (ast.expr, ast.Slice))]
        if not isinstance(node, _PURE) or not all(map(self.follows, parts)):
            return False
        # What has elements is no integer, so the header would never hold.
        return not (isinstance(node, ast.Subscript) and self._is_number(node.value))

    def _follows_name(self, node: ast.Name | ast.Attribute) -> bool:
        if isinstance(node, ast.Name) and node.id in self.names:
            return True
        if (self.site.resolve(node) or "").startswith("torch."):
            return isinstance(node, ast.Attribute) and self._is_global(node)
        if isinstance(node, ast.Name) and self._is_made(node.id, self.statement):
            return self.makes(node.id)
        return self._takes(node)

    def _takes(self, node: ast.expr) -> bool:
        """Make a size, or what may hold an integer, an argument of the counting function."""
        text, value = ast.unparse(node), self.site.value(node)
        local = (root := root_of(node, called=True)) is not None and self.site.evaluator.scope.is_local(root)
        unknown = value.kind is ValueKind.TENSOR or (isinstance(node, ast.Attribute) and not value.is_python)
        if not local or (unknown and not is_size(node)):
            return False
        self.arguments.setdefault(text, text if text.isidentifier() else f"size_{len(self.arguments) + 1}")
        return True

    def _follows_call(self, node: ast.Call) -> bool:
        name, given = self.site.operation(node)
        for word in node.keywords:
            if word.arg == "device":
                self.dropped.add(ast.dump(word))
            elif word.arg not in _TELLS or not self.follows(word.value):
                return False
        owned = self.site.resolve(node.func) is None
        if not owned and not self._is_global(node.func):
            return False
        if name in _MAKES and not owned:
            return all(map(self.follows, given)) and not (name.endswith("_like") and self._is_number(given[0]))
        moved = name == "to" and not all((self.site.resolve(each) or "").startswith("torch.") for each in given[1:])
        known = (
            (name in _COMPUTES or (name in _WRITES and isinstance(given[0], ast.Call)))
            and not moved
            and bool(given)
            and all(map(self.follows, given))
        )
        return known and not self._is_number(given[0])

    def _is_global(self, node: ast.expr) -> bool:
        """True where the counting function, at the top level of the module, knows the name, too."""
        return not self.site.evaluator.scope.is_local(root_of(node) or "")

    def _is_number(self, node: ast.expr) -> bool:
        return ast.unparse(node) in self.arguments


def _stores(function: ast.AST, name: str) -> list[ast.Name]:
    return [part for part in walk(function) if stores_name(part, name)]


def _helper(site: Site, built: _Built, mask: ast.expr) -> Helper:
    """A function of the integers that builds the mask, on the CPU, and counts what it selects."""
    where = "in" if _bare(mask) is mask else "outside"
    name = site.free_name(f"_number_{where}_{(root_of(_bare(mask)) or 'mask').strip('_').lower()}")
    simpler = _Simpler(built)
    copies = [simpler.visit(ast.parse(ast.unparse(each)).body[0]) for each in built.kept]
    made = [
        f"@{CONSTANT.name}",
        f"def {name}({', '.join(built.arguments.values())}):",
        f'    """How many elements `{ast.unparse(mask)}` selects, for torch.compile: sizes alone decide that."""',
        *(f"    {line}" for each in copies for line in ast.unparse(each).splitlines()),
        f"    return int(({ast.unparse(mask)}).count_nonzero())",
    ]
    return Helper(name, "\n".join(made), since="compiler.assume_constant_result")


class _Simpler(ast.NodeTransformer):
    """Leaves devices out, and names the arguments of the counting function."""

    def __init__(self, built: _Built) -> None:
        self.built = built

    def visit_keyword(self, node: ast.keyword) -> ast.keyword | None:
        if ast.dump(node) in self.built.dropped:
            return None
        self.generic_visit(node)
        return node

    def visit(self, node: ast.AST) -> ast.AST:
        named = self.built.arguments.get(ast.unparse(node)) if isinstance(node, ast.expr) else None
        if named is not None:
            return ast.Name(named, ast.Load())
        found: ast.AST = super().visit(node)
        return found


# Whether an attribute that is read in two statements holds the same in both

_HARMLESS = frozenset(f"builtins.{each}" for each in "len range int float bool min max sum abs isinstance".split())


def why_it_may_change(site: Site, name: str, lines: range) -> str | None:
    """What may give the attribute `name` another value on these lines of the function; None if nothing does.

    Only torch's functions, methods of tensors, and a few of Python's own are known to leave attributes alone; a call of
    a layer may run hooks.
    """
    if reads_loudly(site.evaluator, name):
        return f"`{name}` is a property that may do more than read; assign it to a variable first"
    for part in ast.walk(site.evaluator.scope.node):
        if getattr(part, "lineno", 0) not in lines:
            continue
        stored = isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
        attributes = isinstance(part, ast.Attribute) or (
            stored and any(isinstance(each, ast.Attribute) for each in ast.walk(part))
        )
        if (stored and attributes) or (isinstance(part, ast.Call) and not _leaves_alone(site, part)):
            return f"`{short(part)}` may change `{name}`; assign it to a variable first"
    return None


def _leaves_alone(site: Site, call: ast.Call) -> bool:
    qualified = site.resolve(call.func)
    if qualified is None and isinstance(call.func, ast.Attribute):
        owner = site.value(call.func.value)
        return owner.is_tensor or isinstance(call.func.value, ast.Call) or call.func.attr in {"size", "dim", "numel"}
    return qualified in _HARMLESS or torch_function(qualified) is not None
