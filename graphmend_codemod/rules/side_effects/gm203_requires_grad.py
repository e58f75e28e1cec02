"""requires-grad (GM203): `requires_grad` of a tensor is set while `forward` runs.

Dynamo ends the graph where the flag of a tensor is set, be it to what it is already: `parameter.requires_grad = False`
in a method that runs at each call. Under `torch.compile` the statement is left out where the flag is that already,
which Dynamo knows while it traces.

`x.requires_grad = True` on a tensor that was made just before, and that nobody else holds, is there for gradient
checkpoints: the first layers are to have an input that requires a gradient. Where layers with parameters that all
require gradients take the tensor next, and nothing else reads it, what they make requires gradients anyway, and the
statement is left out under `torch.compile` as well. Where the tensor goes to anything else under a condition, such as
`self.gradient_checkpointing`, that condition has to be false. Eager mode keeps the statement, word for word. The flag
of `state.v` of a `state = State(v=torch.zeros(3))` changes at each call, and the graph breaks as before.

`total = torch.tensor(0.0, requires_grad=True, device=x.device)` makes a leaf whose gradient nobody reads, and so does
`return torch.zeros_like(x).requires_grad_()` in a file that asks no tensor for `.grad` or `.is_leaf`. Where `x`
requires a gradient, the compile path makes it without the flag and adds the sum of no elements of `x`: it is 0, and the
result requires a gradient as before, of which `x` gets zeros; it is no leaf, so it has no `.grad` of its own. Where `x`
requires none, the graph breaks as before; so it does while gradients are off, unless all that the function does with
the constant is to compute with it, which tells nobody of its flag then. `requires_grad=self.training`, a local there
and the `x.requires_grad` of a tensor are asked for: where they are False, nothing breaks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.patterns import (
    all_given,
    is_name,
    is_not,
    mentions,
    only_target,
    operands_of,
    reads_name,
    stores_name,
    values_given,
)
from graphmend_codemod.analysis.scope import dotted, of_kind, walk_scope
from graphmend_codemod.rules.framework.edits import beside, judged
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.conditions.deciding_operands import is_guard, is_plain
from graphmend_codemod.rules.proofs.gradients.constant_leaves import (
    constant_leaf,
    kept_in_the_graph,
    leaf_made,
    made_of_no_elements,
)

rule = Rule(
    __name__,
    __doc__,
    title="set requires_grad only where it changes",
    contract=Contract(
        cost=Cost.NONE, compiled_state="a tensor that `forward` made and dropped keeps no gradient", may_raise=False
    ),
)


@rule.on(ast.Assign, ast.Expr, words=("requires_grad", "requires_grad_"), here=True)
def flag_set(site: Site, node: ast.Assign | ast.Expr) -> Diagnostic | None:
    """`x.requires_grad = True`, `x.requires_grad_(False)`."""
    found = _set(node)
    if found is None or any(isinstance(each, ast.If) and is_guard(site, each.test) for each in site.place.parents):
        return None
    tensor, flag = found
    message = f"sets `requires_grad` while `forward` runs: `{speculation.short(node)}`"
    if site.value(tensor).is_python or _is_module(site, tensor):
        return None
    new = isinstance(tensor, ast.Name) and is_new(site, tensor.id)
    if flag and (backward := _backward_after(site, node)) is not None:
        return Diagnostic(message, declined=f"`{speculation.short(backward)}` after it breaks the graph too")
    if isinstance(node, ast.Expr) and not (new and flag):
        # Dynamo traces the method where it changes nothing.
        reason = "that breaks the graph where it changes the flag; manually set the flag before compiled code is called"
        return (
            None
            if site.is_fresh(site.value(tensor)) or dotted(tensor) is None
            else Diagnostic(message, declined=reason)
        )
    if dotted(tensor) is None:
        return Diagnostic(message, declined=f"`{speculation.short(tensor)}` has no name; manually set the flag outside")
    known = site.value(tensor)
    sure = known.is_tensor and not known.hint
    asked = [site.compiling] if sure else [site.compiling, f"isinstance({site.text(tensor)}, {site.torch}.Tensor)"]
    if new and flag and isinstance(tensor, ast.Name):
        try:
            # Eager mode raises where it is made of something that requires a gradient.
            leaf = [f"{tensor.id}.is_floating_point()", f"{tensor.id}.requires_grad is False"]
            asked += [*leaf, *conditions_of_next_readers(site, tensor.id)]
        except NotProven as reason:
            return Diagnostic(message, declined=str(reason))
    elif flag and _is_made_for(site, tensor):
        why = f"`{speculation.short(tensor)}` is made in this function, and the graph breaks where its flag is set"
        return Diagnostic(message, declined=f"{why}; manually make it before compiled code is called")
    elif (test := _changes(site, tensor, flag)) is not None:
        why = f"`{speculation.short(test)}` around it says that it changes the flag, which breaks the graph"
        return Diagnostic(message, declined=f"{why}; manually set the flag before compiled code is called")
    else:
        asked.append(f"{site.text(tensor)}.requires_grad is {flag}")
        asked += [f"{site.text(tensor)}.is_leaf"] if flag else []
    header = site.header("if", asked, negated=True)
    return Diagnostic(message, edit=beside(site, site.span(node), (header + "\n    ", site.original(node, 1))))


@rule.on(
    ast.Assign, candidate="value", when=lambda node: isinstance(node.value, ast.Call) and bool(node.value.keywords)
)
def made_as_leaf(site: Site, node: ast.Assign) -> Diagnostic | None:
    """`total = torch.tensor(0.0, requires_grad=True)`."""
    call = constant_leaf(site, node)
    if call is None:
        return None
    message = f"makes a constant that requires a gradient while `forward` runs: `{speculation.short(call)}`"
    return judged(message, lambda: made_of_no_elements(site, node, call))


def _backward_after(site: Site, node: ast.stmt) -> ast.Call | None:
    """A later call of `backward` in the same function, for which the tensor is made a leaf."""
    for part in walk_scope(site.evaluator.scope.node):
        called = part.func if isinstance(part, ast.Call) and part.lineno > node.lineno else None
        if isinstance(part, ast.Call) and isinstance(called, ast.Attribute) and called.attr == "backward":
            return part
    return None


@rule.on(ast.Return, ast.Assign, words=("requires_grad_",), candidate="value")
def leaf_returned(site: Site, node: ast.Return | ast.Assign) -> Diagnostic | None:
    """`return torch.zeros_like(x).requires_grad_()`."""
    made = leaf_made(site, node)
    if made is None:
        return None
    message = f"makes a constant that requires a gradient while `forward` runs: `{speculation.short(made)}`"
    return judged(message, lambda: kept_in_the_graph(site, node, made))


def _set(node: ast.Assign | ast.Expr) -> tuple[ast.expr, bool] | None:
    """The tensor and the flag that a statement sets."""
    if isinstance(node, ast.Assign):
        target, value = node.targets[0], node.value
        named = isinstance(target, ast.Attribute) and target.attr == "requires_grad" and len(node.targets) == 1
        known = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        return (target.value, value.value) if named and known else None  # type: ignore[attr-defined]
    call = node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "requires_grad_":
        return None
    given = all_given(call)
    flags = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, bool)]
    return (call.func.value, flags[0] if flags else True) if len(given) == len(flags) <= 1 else None


def _changes(site: Site, tensor: ast.expr, flag: bool) -> ast.expr | None:
    """The test around the site that the tensor has the other flag: `if not x.requires_grad: x.requires_grad = True`."""
    asked = f"{ast.unparse(tensor)}.requires_grad"
    within = {id(body[position]) for body, position in site.place.blocks}
    for parent in site.place.parents:
        if isinstance(parent, ast.If) and any(id(each) in within for each in parent.body):
            for each in operands_of(parent.test, ast.And):
                other = each.operand if is_not(each) else each
                if ast.unparse(other) == asked and is_not(each) is flag:
                    return parent.test
    return None


def _is_made_for(site: Site, tensor: ast.expr) -> bool:
    """True for `state.v` of a `state = State(v=torch.zeros(3))`: new in each call, and no leaf that has the flag."""
    if not isinstance(tensor, ast.Attribute) or not isinstance(tensor.value, ast.Name):
        return False
    made = values_given(site.evaluator.scope.node, tensor.value.id)
    words = [word for each in made for word in (each.keywords if isinstance(each, ast.Call) else [])]
    given = [word.value for word in words if word.arg == tensor.attr]
    return bool(made) and len(given) == len(made) and all(_makes_new(site, each) for each in given)


def _is_module(site: Site, node: ast.expr) -> bool:
    """True for a layer, all parameters of which `requires_grad_` sets."""
    made = site.value(node).instance_of
    return made is not None or (is_name(node, site.evaluator.scope.self_name))


# Whether only layers read a tensor before its variable is reassigned

_MAKES = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "zeros_like", "ones_like", "empty_like"})


def is_new(site: Site, name: str) -> bool:
    """True where each value of a local name is an object of its own: a view, a new tensor, what an operator makes."""
    function = site.evaluator.scope.node
    stores = [part for part in walk_scope(function) if stores_name(part, name)]
    before = [part for part in stores if part.lineno < site.place.statement.lineno]
    if any(part.lineno < site.place.statement.lineno for part in _kept(function, name)):
        return False
    given = {
        id(each.targets[0]): each.value for each in of_kind(walk_scope(function), ast.Assign) if len(each.targets) == 1
    }
    return bool(before) and all(id(part) in given and _makes_new(site, given[id(part)]) for part in before)


def _kept(function: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a local name is read for more than an attribute, or for its own next value: something else may hold it."""
    fine: set[int] = set()
    for part in walk_scope(function):
        if isinstance(part, ast.Attribute):
            fine.add(id(part.value))
        elif isinstance(part, ast.Assign) and _is_result(part, name):
            fine |= {id(each) for each in ast.walk(part.value)}
    for part in walk_scope(function):
        if reads_name(part, name) and id(part) not in fine:
            yield part


def _makes_new(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        views = (isinstance(each, ast.Slice) or getattr(each, "value", 0) in (None, ...) for each in parts)
        return site.value(node.value).is_tensor or any(views)
    if isinstance(node, ast.BinOp):
        return site.value(node).is_tensor
    called = site.resolve(node.func) if isinstance(node, ast.Call) else None
    return called is not None and called.startswith("torch.") and called.removeprefix("torch.") in _MAKES


def conditions_of_next_readers(site: Site, name: str) -> list[str]:
    """Conditions under which what is made of the tensor next requires gradients, and nothing else reads it."""
    found: dict[str, None] = {}
    for body, position in reversed(site.place.blocks):
        if _consumed(site, body[position + 1 :], name, found):
            return list(found)
        around = next((parent for parent in site.place.parents if _holds(parent, body)), None)
        if around is not None and not isinstance(around, (ast.If, ast.FunctionDef)):
            break
    raise NotProven(f"no layer takes `{name}` next; manually set the flag outside of `forward`")


def _holds(parent: ast.AST, body: Sequence[ast.stmt]) -> bool:
    return any(getattr(parent, field, None) is body for field in ("body", "orelse", "finalbody"))


def _consumed(site: Site, statements: Sequence[ast.stmt], name: str, found: dict[str, None]) -> bool:
    """True where the name holds what a layer makes of it behind the statements; conditions are put into `found`."""
    for statement in statements:
        if not mentions(statement, name):
            continue
        if isinstance(statement, ast.For) and (layers := _layers(site, statement, name)) is not None:
            target = statement.target.id if isinstance(statement.target, ast.Name) else ""
            found |= dict.fromkeys(layers)
            if _branch(site, statement.body, name, target, found):
                return True
        if _is_result(statement, name) and (asked := _own_layer(site, statement, name)):
            found |= dict.fromkeys(asked)
            return True
        raise NotProven(f"`{speculation.short(statement)}` reads it; manually set the flag outside of `forward`")
    return False


def _branch(site: Site, body: Sequence[ast.stmt], name: str, layer: str, found: dict[str, None]) -> bool:
    """The same for the body of a loop over layers, and for the arm of a test in it that is taken."""
    for statement in body:
        if not mentions(statement, name):
            continue
        if _is_result(statement, name) and _calls(statement, layer, name):
            return True
        plain = isinstance(statement, ast.If) and is_plain(site, statement.test)
        if isinstance(statement, ast.If) and plain and _branch_quietly(site, statement.orelse, name, layer, found):
            found[f"not ({site.text(statement.test)})"] = None
            return True
        raise NotProven(f"`{speculation.short(statement)}` reads it; manually set the flag outside of `forward`")
    return False


def _branch_quietly(site: Site, body: Sequence[ast.stmt], name: str, layer: str, found: dict[str, None]) -> bool:
    try:
        return _branch(site, body, name, layer, found)
    except NotProven:
        return False


def _is_result(statement: ast.stmt, name: str) -> bool:
    """True for `name = ...`."""
    target = only_target(statement)
    return is_name(target, name)


def _calls(statement: ast.stmt, layer: str, name: str) -> bool:
    """True for `... = layer(name)`."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or not is_name(call.func, layer):
        return False
    return _takes_once(call, name)


def _takes_once(call: ast.Call, name: str) -> bool:
    reads = [part for part in ast.walk(call) if is_name(part, name)]
    return len(reads) == 1 and any(part is reads[0] for part in call.args[:1])


def _layers(site: Site, loop: ast.For, name: str) -> list[str] | None:
    """Conditions for `for layer in self.layers`."""
    return list(_trained(site, loop.iter)) if _is_own(site, loop.iter) and not loop.orelse else None


def _own_layer(site: Site, statement: ast.stmt, name: str) -> list[str]:
    """Conditions for `name = self.layer(name)`."""
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or not _is_own(site, call.func) or not _takes_once(call, name):
        return []
    return list(_trained(site, call.func))


def _is_own(site: Site, node: ast.expr) -> bool:
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return own and node.value.id == site.evaluator.scope.self_name  # type: ignore[attr-defined]


def _trained(site: Site, layers: ast.expr) -> Iterator[str]:
    text = site.text(layers)
    yield f"isinstance({text}, {site.torch}.nn.Module)"
    yield f"{{each.requires_grad for each in {text}.parameters()}} == {{True}}"
