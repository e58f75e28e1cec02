"""Consecutive statements of a method as one operator of torch.compile, where no shape of a fixed size exists for them.

The statements move, word for word, into a function that gets the instance and what they read. They may run layers, and
change one tensor in place that nothing else refers to; so what leaves them has the shape and dtype of what enters.
Eager mode calls the function. Under torch.compile an operator does so, with a gradient that runs it again. What the
operator cannot take is asked for while tracing, and then the statements are traced, and break the graph, as before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import calls_in
from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import values_assigned
from graphmend_codemod.analysis.scope import SCOPES, children, walk, walk_scope
from graphmend_codemod.analysis.value_flow import attribute_stores
from graphmend_codemod.core.findings import Edit, Helper, Replacement
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of_words
from graphmend_codemod.rules.proofs.calls.certain_calls import own_definition
from graphmend_codemod.rules.proofs.memory.shared_memory import SharedMemory
from graphmend_codemod.rules.proofs.outlining.custom_op import (
    LEFT_TO_CALLERS,
    OF_A_CLASS,
    OWN_GRADIENT,
    call,
    def_line,
    definition_before,
    demand_movable,
    demand_own_names,
    fitting,
    is_bound_before,
    moved,
    one_operator,
)
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.effects.region_effects import RegionEffects
from graphmend_codemod.rules.proofs.outlining.effects.region_layers import (
    WHOLE,
    check_children,
    check_layers,
    is_container,
)
from graphmend_codemod.rules.proofs.outlining.texts.layers import HOLDS_ONLY

_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.Global, ast.Nonlocal)
_FORMS = (*SCOPES, ast.AsyncWith, ast.Try, ast.Match, ast.Import, ast.ImportFrom, ast.Delete, ast.NamedExpr)
_NUMBERS = frozenset({AttributeKind.CONSTANT, AttributeKind.CONFIG, AttributeKind.ARGUMENT})
_ITERATORS = frozenset(f"builtins.{each}" for each in ("iter", "zip", "map", "filter", "reversed", "enumerate"))
_FURTHER = 6
_COMMENT = "# Shapes in here depend on the data: torch.compile calls this function as one operator."


class UsedLater(NotProven):
    """A name that the region binds is read behind it."""


class Region:
    """Consecutive statements of a block, the last one at `site`, and what they read, change and leave behind."""

    def __init__(self, site: Site, statements: Sequence[ast.stmt]) -> None:
        first = site.reached(statements[0], "the loop")
        self.site = first
        self.last = site.at(statements[-1]) or site
        self.statements = list(statements)
        self._parents = {id(c): part for each in statements for part in walk(each) for c in children(part)}
        self.effects = RegionEffects(first, statements)
        self.classes: dict[str, str] = {}
        self.follows_methods = False

    def result(self) -> str:
        """The name of the one tensor that the region changes; NotProven if that is not all it does."""
        self._check_forms()
        changed = self.effects.changed()
        left = {name for name in self.effects.stored - changed if self.last.live_after(name)}
        if left:
            raise UsedLater(f"`{min(left)}` is used after the loop; manually compute it anew there")
        if len(changed) != 1:
            several = " and ".join(f"`{name}`" for name in sorted(changed))
            raise NotProven(f"the loop changes {several}, not one tensor" if several else "no tensor is changed")
        (name,) = changed
        if not self.site.value(ast.Name(name, ast.Load())).is_tensor or not self.site.sole_owner(name):
            raise NotProven(f"`{name}` may share memory with another tensor")
        self.effects.check_rebound(name)
        return name

    def _check_forms(self) -> None:
        scope = self.site.evaluator.scope
        demand_torch(self.site)
        method = scope.self_name is not None and scope.class_qualified is not None
        if not (method or scope.class_qualified is None) or "." in self.site.function.partition(".")[2 * method]:
            raise NotProven("the loop is in a static method or a nested function")
        if not method and isinstance(scope.node, ast.AsyncFunctionDef):
            raise NotProven("the function is asynchronous")
        demand_movable(self.effects.nodes, _LEAVES, _FORMS, OF_A_CLASS)
        for part in self.effects.nodes:
            if isinstance(part, ast.With) and not all(_is_no_grad(self.site, item) for item in part.items):
                raise NotProven(f"`{speculation.short(part)}` in the loop cannot be moved into a function")
        demand_own_names(self.site, self.effects.stored, self.effects.stored)

    def _loads(self) -> Iterator[ast.Name]:
        names = [
            part
            for statement in self.statements
            for part in (statement, *walk_scope(statement))
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        ]
        yield from sorted(names, key=lambda part: (part.lineno, part.col_offset))

    def given(self, result: str) -> list[str]:
        """The locals that the region reads, `result` first. NotProven for what may not be bound, or is callable."""
        scope, found = self.site.evaluator.scope, {result: None}
        for part in self._loads():
            name = part.id
            inside = name in self.effects.stored and not reads_before_writing(self.statements, name)
            if name in found or inside or name == scope.self_name or not scope.is_local(name):
                continue
            value = self.site.value(ast.Name(name, ast.Load()))
            if not is_bound_before(self.site, name, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.With)):
                raise NotProven(f"`{name}` may be unbound before the loop")
            outer = self._parents.get(id(part))
            called = isinstance(outer, ast.Call) and outer.func is part
            if value.callee is not None or value.instance_of is not None or called:
                raise NotProven(f"`{name}` is neither a Tensor nor a number")
            if any(self._reads_once(each) for each in values_assigned(scope.node, name)):
                raise NotProven(f"`{name}` can be gone through only once; make it a list")
            found[name] = None
        return list(found)

    def _reads_once(self, node: ast.expr) -> bool:
        called = self.site.resolve(node.func) if isinstance(node, ast.Call) else None
        return isinstance(node, ast.GeneratorExp) or called in _ITERATORS

    def parts(self) -> list[str]:
        """The attributes of the instance that the region reads and that may hold tensors, layers checked."""
        scope = self.site.evaluator.scope
        found: dict[str, None] = {}
        for part in self._loads():
            if part.id != scope.self_name:
                continue
            outer = self._parents[id(part)]
            if isinstance(outer, ast.Subscript) and outer.value is part and is_container(self.site):
                found[WHOLE] = None
                check_children(self.site)
                continue
            if not isinstance(outer, ast.Attribute):
                raise NotProven(f"the loop uses `{part.id}`")
            further = self._parents[id(outer)]
            fact = scope.attribute(outer.attr)
            if scope.class_facts is not None and outer.attr in scope.class_facts.methods:
                for each in self._read_by_method(outer, further):
                    self._take(each, found)
            elif not (isinstance(further, ast.Attribute) and fact is not None and fact.kind in _NUMBERS):
                self._take(outer.attr, found)
        if WHOLE in found:  # its layers are among those of the instance
            return [each for each in found if each == WHOLE or not _may_hold_layers(self.site, each)]
        return list(found)

    def _take(self, attribute: str, found: dict[str, None]) -> None:
        """Make an attribute a part, unless it is a constant. NotProven for what may change, and what layers may do."""
        fact = self.site.evaluator.scope.attribute(attribute)
        if self._is_set_later(attribute):
            raise NotProven(f"`self.{attribute}` is set outside of `__init__`")
        if attribute == "training" or (fact is not None and fact.kind is AttributeKind.CONSTANT):
            return
        found[attribute] = None
        if _may_hold_layers(self.site, attribute):
            kind = check_layers(self.site, attribute)
            if kind is not None:
                self.classes[attribute] = kind

    def _read_by_method(self, method: ast.Attribute, further: ast.AST) -> list[str]:
        """The attributes that a method of the instance reads. NotProven where it may do more than compute."""
        layers: set[str] = set()
        effects = FunctionEffects(self.site, layers=layers)
        called = isinstance(further, ast.Call) and further.func is method
        own = self.site.evaluator.scope.self_name or ""
        function = effects.method(further, own) if called else None  # type: ignore[arg-type]
        if function is None or not function.args.args:
            raise NotProven(f"`self.{method.attr}` is a method or a property, which may have side effects")
        owner = self.site.class_name
        assigned = calls_in(self.site.source.text).assigned(owner, method.attr)
        if assigned or effects.changed(function, own=function.args.args[0].arg) or effects.set:
            raise NotProven(f"the method `self.{method.attr}` may change something")
        self.follows_methods = True
        return sorted(effects.read | layers)

    def conditions(self) -> list[str]:
        """What the classes of layers have to be, as far as the constructor does not tell; `parts` comes before."""
        own, owner = self.site.evaluator.scope.self_name, self.site.evaluator.scope.class_qualified or ""
        methods = [f"type({own}) is {owner.rpartition('.')[2]}"] if self.follows_methods else []
        dicts = [f"type({own}.{each}) is torch.nn.ModuleDict" for each in self.effects.dicts]
        return [*methods, *dicts, *(f'_holds_only({own}, "{each}", {kind})' for each, kind in self.classes.items())]

    def is_given_and_written_later(self, given: Sequence[str]) -> bool:
        """True where what the operator gets, but for what it changes itself, may be written in place behind it.

        Its gradient asks for that, where eager mode needs none of it: rows that a mask chooses are copies.
        """
        memory = SharedMemory(self.last, calls_in(self.site.source.text), passed_over=tuple(self.statements))
        try:
            memory.demand_no_write(own_definition(self.last), self.statements[-1], set(given[1:]))
        except NotProven:
            return True
        return False

    def _is_set_later(self, attribute: str) -> bool:
        owner, calls = self.site.class_name, calls_in(self.site.source.text)
        stores = (each for each in attribute_stores(calls).get(attribute, ()) if each.inside == owner)
        functions = [calls.around(each.target.lineno) for each in stores]
        return any(each is not None and each.node.name != "__init__" for each in functions)


def _is_no_grad(site: Site, item: ast.withitem) -> bool:
    context = item.context_expr
    plain = isinstance(context, ast.Call) and item.optional_vars is None
    return plain and site.resolve(context.func) == "torch.no_grad"  # type: ignore[attr-defined]


def edit(site: Site, statements: Sequence[ast.stmt], about: str) -> Edit:
    """The statements as a call of a new function that holds them, which torch.compile calls as one operator.

    `about` is the first sentence of the function's docstring, in which `{}` is the name of the changed tensor.
    NotProven, with the reason, where the statements cannot be outlined.
    """
    region, result = _region(site, statements)
    statements = region.statements
    given, parts = region.given(result), region.parts()
    layers = [part for part in parts if part == WHOLE or _may_hold_layers(site, part)] or parts
    made = [part for part in layers if _is_made_by_a_call(site, part)] or layers
    function = f"_run_{made[0].strip('_') or 'layers'}" if layers else f"_change_{result}"
    owner = site.evaluator.scope.self_name if site.evaluator.scope.class_qualified is not None else None
    own = [owner] if owner is not None else []
    start, end = site.span(statements[0]), site.span(statements[-1])
    whole = start.through(end)
    replacement = Replacement(whole, (region.site.call(f"{result} = {function}(", [*own, *given]),))
    operator, after = f"{function}_operator", definition_before(site)
    helpers = (
        *one_operator(site, *((Helper("_holds_only", HOLDS_ONLY, shared=True),) if region.classes else ())),
        *LEFT_TO_CALLERS,
        OWN_GRADIENT,
        Helper(function, _function(region, function, own, given, parts, about), after=after),
        Helper(
            operator,
            _operator(region, function, own, given, parts),
            after=(*after, function, "_one_operator", OWN_GRADIENT.name),
        ),
    )
    return Edit((replacement,), imports=site.imports, helpers=helpers)


def _is_made_by_a_call(site: Site, attribute: str) -> bool:
    fact = site.evaluator.scope.attribute(attribute)
    return fact is not None and fact.kind is AttributeKind.CALL


def _may_hold_layers(site: Site, attribute: str) -> bool:
    fact = site.evaluator.scope.attribute(attribute)
    return fact is None or fact.kind not in {*_NUMBERS, AttributeKind.PARAMETER, AttributeKind.BUFFER}


def _region(site: Site, statements: Sequence[ast.stmt]) -> tuple[Region, str]:
    """The statements with those behind them that use what they bind, and the tensor that these change."""
    body, position = site.place.blocks[-1]
    last = next((place for place, each in enumerate(body) if each is statements[-1]), position)
    for end in range(last + 1, last + 1 + _FURTHER):
        region = Region(site, [*statements, *body[last + 1 : end]])
        try:
            return region, region.result()
        except UsedLater:
            if end >= len(body) or end == last + _FURTHER:
                raise
    raise AssertionError("the last iteration returns or raises")


def _function(region: Region, name: str, own: list[str], given: list[str], parts: list[str], about: str) -> str:
    site, result, owner = region.site, given[0], own[0] if own else "None"
    tested = call(site, "_fits_an_operator", ["__name__", owner, tuple_of_words(parts), *given], 2).lstrip()
    ungraded = [f"not {site.torch}.is_grad_enabled()"] if region.is_given_and_written_later(given) else []
    return "\n".join(
        [
            def_line(name, [*own, *given], site.line_limit),
            f'    """{about.format(result)}"""',
            f"    {_COMMENT}",
            fitting(site, name, [*region.conditions(), *ungraded, tested]),
            f"        return {call(site, f'{name}_operator', [owner, *given], 2).lstrip()}",
            moved(site, region.statements),
            f"    return {result}",
        ]
    )


def _operator(region: Region, name: str, own: list[str], given: list[str], parts: list[str]) -> str:
    quoted = ", ".join(f'"{part}"' for part in parts)
    return "\n".join(
        [
            f"@_one_operator({quoted})",
            f"@{OWN_GRADIENT.name}",
            def_line(f"{name}_operator", [*(own or ["_"]), *given], region.site.line_limit),
            f'    """`{name}` as one operator for torch.compile."""',
            f"    return {call(region.site, name, [*own, *given], 1).lstrip()}",
        ]
    )
