"""autograd-grad (GM604): a gradient that `forward` itself takes by `torch.autograd.grad`.

Forces are gradients of an energy, flows need the derivative of a monotonic function, scores that of a density. Dynamo
breaks the graph at `x.clone().requires_grad_()` and at `torch.autograd.grad(y, x)`, and it traces `torch.func.vjp`,
which computes the same: eager mode keeps the author's statements, word for word, and under `torch.compile` what lies
between the two becomes a function of `x`. Gradients of that gradient are those of eager mode, and what
`create_graph` says holds of the result.

The leaf has to be made in the function (`x = x.clone().requires_grad_()`, `x = pos.detach().requires_grad_()`), in the
same block or in one `with torch.enable_grad():` before, and is not used behind the last gradient: there it would be
another tensor. Statements between compute one result from it, and change nothing else. `allow_unused` has no
counterpart. `x.requires_grad_()` on a tensor that was handed in changes what the caller holds, and is left alone.
Layers that are not torch's own, that have hooks, work in place, or change buffers as they train (batch norm) are told
apart while tracing, and break the graph as before: they may keep what they compute, or write into the leaf, which ends
compiled code with an error. A `torch.autograd.Function` between (`Own.apply(x)`) is left alone: Dynamo would leave
the gradient out that it defines. Inside of an activation checkpoint in compiled
code `torch.func` is a compile error: suppress the finding there. Where other code than that of layers and of torch runs
between, it may do all that unseen: there it is an unsafe fix.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import is_attribute, is_constant, is_name, names_bound, root_of
from graphmend_codemod.analysis.scope import SCOPES, walk, walk_scope
from graphmend_codemod.core.findings import CompilePath, Edit, Helper, Original, Replacement, Safety, Span
from graphmend_codemod.project.index.facts import AttributeKind as _Held
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site

rule = Rule(
    __name__,
    __doc__,
    title="take gradients in forward by torch.func.vjp under torch.compile",
    contract=Contract(
        cost=Cost.NONE,
        compiled_exceptions="kept, but for what depends on no input, or where gradients are off, zeros are no error",
    ),
)

_GRADIENTS = '''\
def _gradients_in_graph(outputs, vjp, grads=None, create_graph=False, batched=False):
    """`torch.autograd.grad` of what `torch.func.vjp` made, which torch.compile traces."""
    if grads is None:
        if outputs.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        grads = torch.ones_like(outputs)
    with torch.set_grad_enabled(bool(create_graph)):
        found = torch.vmap(vjp)(grads) if batched else vjp(grads)
    return found if create_graph else tuple(each.detach() for each in found)'''
_UNCHANGING = '''\
def _change_nothing(*parts) -> bool:
    """True for layers of torch that run without a trace: `torch.func.vjp` refuses to change what lies outside of it."""
    return all(
        isinstance(part, torch.nn.Module)
        and all(type(each).__module__.startswith("torch.nn.") for each in part.modules())
        and not any(each.training and len(each._buffers) for each in part.modules())
        and not any(len(each._forward_hooks) + len(each._forward_pre_hooks) for each in part.modules())
        and not any(getattr(each, "inplace", False) for each in part.modules())
        for part in parts
    )'''
_HELPERS = (("_gradients_in_graph", _GRADIENTS), ("_change_nothing", _UNCHANGING))
_COMMENT = "# Dynamo traces `torch.func.vjp`, and not `torch.autograd.grad`."
_NO_LAYERS = frozenset({_Held.PARAMETER, _Held.BUFFER, _Held.CONSTANT, _Held.CONFIG})
_GRAD = "torch.autograd.grad"
_WORDS = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs")
_KNOWN = frozenset({*_WORDS, "is_grads_batched"})
_LEAVES = (
    ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete, ast.NamedExpr, ast.With,
    ast.AsyncWith, ast.Try, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, *SCOPES,
)  # fmt: skip


@rule.on(ast.Assign, ast.Return, ast.Expr, words=("grad", "autograd"), here=True)
def gradient_in_forward(site: Site, statement: ast.stmt) -> Diagnostic | None:
    """`slope = torch.autograd.grad(y, x, torch.ones_like(y))[0]`."""
    calls = [part for part in walk_scope(statement) if isinstance(part, ast.Call) and site.resolve(part.func) == _GRAD]
    if not calls or site.function.endswith("_gradients_in_graph"):
        return None
    message = f"takes a gradient in `forward`, which Dynamo does not trace: `{speculation.short(calls[0])}`"
    try:
        found = _Gradient(site, calls[0])
        return Diagnostic(message, edit=found.edit(), safety=Safety.UNSAFE if found.parts is None else None)
    except NotProven as reason:
        return Diagnostic(message, declined=str(reason))


class _Gradient:
    """The gradients of one output for one input, which its function may take at several places."""

    def __init__(self, site: Site, call: ast.Call) -> None:
        self._site = site
        given = _given(call)
        output, leaf = _only(given.get("outputs")), _only(given.get("inputs"))
        if not isinstance(output, ast.Name) or not isinstance(leaf, ast.Name):
            raise NotProven("the gradient is not that of one name for another one; manually use `torch.func.vjp`")
        self._output, self._input = output.id, leaf.id
        self._leaf = new_leaf(site, leaf.id)
        self._calls = list(self._all_calls())
        self._between = self._statements()
        self.parts = self._parts()

    def _all_calls(self) -> Iterator[tuple[Site, ast.stmt, ast.Call]]:
        """Every gradient that the function takes; NotProven where one is not of this output for this input."""
        site = self._site
        function = site.evaluator.scope.node
        for statement in (part for part in walk_scope(function) if isinstance(part, ast.stmt)):
            heads = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
            for call in (each for head in heads for each in walk(head) if isinstance(each, ast.Call)):
                taken = site.resolve_global(call.func) == _GRAD or getattr(call.func, "attr", "") == "backward"
                if not taken:
                    continue
                inner = site.at(statement)
                if inner is None or not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)):
                    raise NotProven(f"`{speculation.short(call)}` is another gradient")
                given = _given(call)
                names = [_only(given.get(word)) for word in ("outputs", "inputs")]
                if [getattr(each, "id", None) for each in names] != [self._output, self._input]:
                    raise NotProven(f"`{speculation.short(call)}` is another gradient")
                yield inner, statement, call

    def _statements(self) -> list[ast.stmt]:
        """The statements that make the output from the leaf."""
        leaf = self._leaf
        end = max(
            (place for place, each in enumerate(leaf.body) if self._output in names_bound(each)), default=leaf.place
        )
        between = list(leaf.body[leaf.place + 1 : end + 1])
        if not between or any(each is call[1] for each in between for call in self._calls):
            raise NotProven(f"`{self._output}` is not made behind `{self._input}` in the same block")
        if leaf.around is not None and len(leaf.body) > end + 1:
            raise NotProven("more than the result is made under `torch.enable_grad()`")
        return between

    def _parts(self) -> list[str] | None:
        """The layers that run on the way, as text; None where other code may run than theirs and torch's."""
        scope = self._site.evaluator.scope
        own = scope.self_name or ""
        local = {self._input, *(name for each in self._between for name in names_bound(each))}
        found: dict[str, None] = {}
        for part in (part for each in self._between for part in walk(each)):
            if isinstance(part, ast.Attribute) and is_attribute(part, own):
                if scope.class_facts is None or not scope.class_facts.is_module:
                    return None
                if part.attr in scope.class_facts.methods:
                    return None
                fact = scope.attribute(part.attr)
                if fact is None or fact.kind not in _NO_LAYERS:
                    found[f"{own}.{part.attr}"] = None
            elif isinstance(part, ast.Call):
                called = self._site.resolve_global(part.func) or ""
                facts = scope.index.function(called) if called else None
                known = called.startswith(("torch.", "builtins.", "math.")) or (facts is not None and facts.computes)
                if not known and root_of(part.func) not in {own, None, *local}:
                    return None
        return list(found)

    def edit(self) -> Edit:
        """The compile paths for the leaf with what is made of it, and for each gradient. NotProven where these show."""
        site = self._site
        last = site.at(self._between[-1])
        if site.scripted or not site.torch_at_import or last is None:
            raise NotProven("TorchScript compiles the function, or `torch` may not be bound where it runs")
        self._check(self._between, last)
        replacements = [self._made(self._between), *map(self._taken, self._calls)]
        helpers = [Helper(name, text, shared=True) for name, text in _HELPERS]
        return Edit(tuple(replacements), site.imports, tuple(helpers[: 2 if self.parts else 1]), since="func.vjp")

    @property
    def _header(self) -> CompilePath:
        conditions = [self._site.compiling]
        if self._leaf.around is None:
            conditions.append(f"{self._site.torch}.is_grad_enabled()")
        if self.parts:
            conditions.append(f"_change_nothing({', '.join(self.parts)})")
        return self._site.header("if", conditions)

    def _check(self, between: Sequence[ast.stmt], last: Site) -> None:
        """NotProven where the statements do not fit into a function of the leaf, or something uses the leaf later."""
        site = self._site
        bound = {name for each in between for name in names_bound(each)}
        for part in (part for each in between for part in (each, *walk_scope(each))):
            changes = isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load)
            word = part.id if isinstance(part, ast.Name) else getattr(part, "attr", "")
            in_place = isinstance(part, ast.Attribute) and word.endswith("_") and not word.endswith("__")
            if isinstance(part, _LEAVES) or changes or in_place or word in {"super", "__class__", "locals"}:
                raise NotProven(f"`{speculation.short(part)}` cannot be moved into a function of `{self._input}`")
            if isinstance(part, ast.Attribute) and part.attr == "apply":
                raise NotProven(f"`{speculation.short(part)}` may have its own gradient, which Dynamo would leave out")
        names = sorted(name for name in bound - {self._input} if reads_before_writing(between, name))
        if names or self._input in bound:
            raise NotProven(f"`{names[0] if names else self._input}` is bound again behind the leaf")
        self._check_order(between[-1].end_lineno or 0)
        if self._is_used_later(between[-1]):
            raise NotProven(f"`{self._input}` is used behind the gradient, where it would be another tensor")
        function = site.evaluator.scope.node
        nested = {each.id for part in walk_scope(function) if isinstance(part, SCOPES) for each in _names(part)}
        inside = {id(each) for part in between for each in _names(part)}
        outside = {each.id for each in _names(function) if id(each) not in inside and isinstance(each.ctx, ast.Load)}
        here = self._leaf.around is None and _contexts(site.at(self._leaf.body[self._leaf.place]))
        if here is not False and any(_contexts(inner) != here for inner, *_ in self._calls):
            raise NotProven("gradients may be on where the result is made, and off where its gradient is taken")
        for name in sorted(bound - {self._output}):
            if name in nested or (name in outside and last.live_after(name)):
                raise NotProven(f"`{name}` is used behind the gradient, and is made on the way to `{self._output}`")

    def _check_order(self, end: int) -> None:
        """NotProven where a gradient is taken above the result, or one of the names is bound once more between them."""
        last = max(statement.lineno for _, statement, _ in self._calls)
        for _, statement, call in self._calls:
            if statement.lineno <= end:
                raise NotProven(f"`{speculation.short(call)}` stands above what makes `{self._output}`")
        for part in _names(self._site.evaluator.scope.node):
            if part.id in {self._output, self._input} and isinstance(part.ctx, ast.Store) and end < part.lineno < last:
                raise NotProven(f"`{part.id}` is bound once more; give each result a name of its own")

    def _is_used_later(self, last: ast.stmt) -> bool:
        """Whether anything behind the result reads the leaf, but for the calls that say what the gradient is for."""
        first = [
            each
            for _, _, call in self._calls
            for each in (*call.args[:2], *(word.value for word in call.keywords if word.arg in {"outputs", "inputs"}))
        ]
        known = {id(part) for each in first for part in walk(each)}
        return any(
            part.id == self._input and id(part) not in known and part.lineno > (last.end_lineno or 0)
            for part in _names(self._site.evaluator.scope.node)
        )

    def _made(self, between: Sequence[ast.stmt]) -> Replacement:
        """What the leaf and the statements behind it become: the output, and its function `vjp`."""
        site, leaf, output = self._site, self._leaf, self._output
        value, one = site.text(leaf.value), between[0]
        depth = 0 if leaf.around is None else 1
        parts: list[str | Original] = [under(self._header, _COMMENT) + "\n"]
        plain = len(between) == 1 and isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
        if plain:
            function = f"lambda {self._input}: {site.text(one.value)}"  # type: ignore[attr-defined]
        else:
            function = site.free_name(f"{output}_of")
            inside = self._whole(between[0], between[-1])
            parts += [f"    def {function}({self._input}):\n        ", Original(inside, 2 - depth)]
            parts += [f"\n        return {output}\n\n"]
        made = f"{output}, {self._vjp} = {site.torch}.func.vjp({function}, {value})"
        if leaf.around is None:
            parts.append(f"    {made}\nelse:\n    ")
            whole = self._whole(leaf.body[leaf.place], between[-1])
        else:
            parts.append(f"    with {site.torch}.enable_grad():\n        {made}\nelse:\n    ")
            whole = site.span(leaf.around)
        return Replacement(whole, (*parts, Original(whole, 1)))

    @property
    def _vjp(self) -> str:
        return self._site.free_name("vjp", f"{self._output}_vjp")

    def _whole(self, first: ast.stmt, last: ast.stmt) -> Span:
        start, end = self._site.span(first), self._site.span(last)
        return start.through(end)

    def _taken(self, taken: tuple[Site, ast.stmt, ast.Call]) -> Replacement:
        """What a statement that takes a gradient becomes."""
        site, statement, call = taken
        given = _given(call)
        arguments = [self._output, self._vjp]
        grads = _only(given.get("grad_outputs"))
        if grads is not None and not is_constant(grads, None):
            arguments.append(site.text(grads))
        for word, name in (("create_graph", "create_graph"), ("is_grads_batched", "batched")):
            if word in given and not is_constant(given[word], False):
                arguments.append(f"{name}={site.text(given[word])}")
        text = f"_gradients_in_graph({', '.join(arguments)})"
        inner = site.but(written={id(call): (call, text)}).text(statement)
        path = under(self._header, inner) + "\nelse:\n    "
        return Replacement(site.span(statement), (path, site.original(statement, 1)))


def _given(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of `torch.autograd.grad` by name; NotProven for those that `torch.func.vjp` has no way for."""
    given = dict(zip(_WORDS, call.args, strict=False)) | {word.arg or "": word.value for word in call.keywords}
    unused = given.pop("allow_unused", None)
    if any(isinstance(each, ast.Starred) for each in call.args) or len(call.args) > len(_WORDS):
        raise NotProven("the arguments of the gradient are not known; manually write each one out")
    unknown = sorted(set(given) - _KNOWN)
    if unused is not None and not is_constant(unused, False):
        unknown.insert(0, "allow_unused")
    if unknown:
        raise NotProven(
            f"`{unknown[0] or '**'}` has no counterpart in `torch.func.vjp`; manually call it without, "
            "or outside of compiled code"
        )
    return given


def _only(node: ast.expr | None) -> ast.expr | None:
    """The one element of a list or tuple, or what is no list."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts[0] if len(node.elts) == 1 else None
    return node


def _contexts(site: Site | None) -> list[int]:
    return [] if site is None else [id(each) for each in site.place.parents if isinstance(each, ast.With)]


def _names(node: ast.AST) -> list[ast.Name]:
    return [part for part in walk(node) if isinstance(part, ast.Name)]


# Tensors that a function makes in order to take gradients for them: `x = x.clone().requires_grad_()`


class Leaf(NamedTuple):
    """`x = value.requires_grad_()` in a block, or alone in the `with torch.enable_grad():` at `position` of a block."""

    body: Sequence[ast.stmt]
    place: int
    value: ast.expr
    around: ast.With | None


def new_leaf(site: Site, name: str) -> Leaf:
    """The nearest statement in front of the site that gives `name` a new tensor that requires gradients."""
    for body, position in reversed(site.place.blocks):
        for place in range(position - 1, -1, -1):
            statement = body[place]
            value = _made(statement, name)
            if value is not None:
                _check_mode(site)
                return Leaf(body, place, value, None)
            if isinstance(statement, ast.With) and _turns_on(site, statement):
                first = _made(statement.body[0], name)
                if first is not None:
                    return Leaf(statement.body, 0, first, statement)
            if name in names_bound(statement):
                break
    raise NotProven(f"`{name}` does not get a new tensor that requires gradients in front of it")


def _check_mode(site: Site) -> None:
    if site.no_grad or site.sets_gradient_mode:
        raise NotProven("gradients may be off where the result is made")


def _turns_on(site: Site, statement: ast.With) -> bool:
    item = statement.items[0]
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    alone = len(statement.items) == 1 and item.optional_vars is None
    return alone and called is not None and site.resolve_global(called) == "torch.enable_grad"


def _made(statement: ast.stmt, name: str) -> ast.expr | None:
    """The `x.clone()` of `x = x.clone().requires_grad_()`."""
    if (
        not isinstance(statement, ast.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.value, ast.Call)
    ):
        return None
    target, call = statement.targets[0], statement.value
    flagged = isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_" and not call.keywords
    if not flagged or not is_name(target, name) or not all(is_constant(a, True) for a in call.args):
        return None
    made = call.func.value  # type: ignore[attr-defined]
    new = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in {"clone", "detach"}
    return made if new else None
