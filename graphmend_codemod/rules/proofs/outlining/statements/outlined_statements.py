"""Consecutive statements as one opaque operator, where the function around them cannot be one.

Eager mode keeps the statements. The compile path calls an operator that holds the same text; it takes the names that
the statements read and gives those that are read later, or what they return. Statements are taken in until what comes
out has shapes that do not depend on data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis.liveness import reads_before_writing
from graphmend_codemod.analysis.patterns import elements_of, is_name, own_variables, root_of, stored_names
from graphmend_codemod.analysis.scope import parameters, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import CompilePath, Edit, Helper, Original, Replacement, Span
from graphmend_codemod.rules.framework.edits import under
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.framework.site_text import tuple_of_words
from graphmend_codemod.rules.proofs.outlining.custom_op import (
    KNOWS_NAMES,
    OF_A_CLASS,
    call,
    def_line,
    definition_before,
    demand_movable,
    functions,
    is_bound_before,
    jumps_out,
    moved,
    one_operator,
    operator_name,
)
from graphmend_codemod.rules.proofs.outlining.effects.function_effects import FunctionEffects
from graphmend_codemod.rules.proofs.outlining.effects.library_effects import check_gradient
from graphmend_codemod.rules.proofs.outlining.functions.opaque_function import numbers_read
from graphmend_codemod.rules.proofs.outlining.functions.result_shapes import ResultShapes, empty_results
from graphmend_codemod.rules.proofs.outlining.statements.ctc_losses import holds_ctc_loss, lengths_asked, reduction_of
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor

_COMMENT = "# torch.compile cannot trace these statements: it calls them as one operator."
_MOST = 8  # statements of one operator
FORMS = (  # which no statement of an operator holds
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global, ast.Nonlocal, ast.Delete),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
)
_CONTEXTS = frozenset({"torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.autocast"})


def edit(site: Site) -> Edit:
    """The compile path in front of the fewest statements around the site that can be one operator.

    NotProven where none can: the shapes of what comes out depend on data however many are taken in. InStatement where
    the site's own statement has an effect that lasts.
    """
    if "." in site.function and site.evaluator.scope.class_qualified is None:
        raise NotProven("the code is in a nested function; move it into a function of its own")
    if isinstance(site.evaluator.scope.node, ast.AsyncFunctionDef):
        raise NotProven("the function is a coroutine")
    reasons: list[NotProven] = []
    for body, position in reversed(site.place.blocks):
        try:
            check_around(site, body[position])
            _check_alone(site, body[position], InStatement)
            return _grown(site, body, position)
        except NotProven as reason:
            reasons.append(reason.anew())
    raise reasons[0].anew()


class InStatement(NotProven):
    """A reason in the site's own statement, whatever operator would hold it."""


class _TakesBefore(NotProven):
    """A reason that may fall away with the statement in front."""


def _grown(site: Site, body: Sequence[ast.stmt], position: int) -> Edit:
    """The edit for a statement of a block with as many neighbours as it takes. NotProven where no number is enough."""
    start, end = position, position + 1
    while True:
        try:
            return _edit_of(site, body[start:end])
        except NotProven as reason:
            more = end - start < _MOST
            before = more and start > 0 and _may_be_moved(site, body[start - 1])
            behind = more and end < len(body) and _may_be_moved(site, body[end])
            if before and (isinstance(reason, _TakesBefore) or not behind):
                start -= 1
            elif behind:
                end += 1
            else:
                raise


def _edit_of(site: Site, statements: Sequence[ast.stmt]) -> Edit:
    question = f"{len(statements)} statements as an operator {site.without_gradients}"
    return site.proven_once(question, statements[0], lambda: _Region(site, statements).edit())


def check_around(site: Site, statement: ast.stmt | None = None) -> None:
    """NotProven for a context around the site, or around a statement that it is in, that an operator would leave."""
    for parent in site.place.parents:
        if statement is not None and (parent is statement or all(part is not statement for part in walk(parent))):
            continue
        for item in parent.items if isinstance(parent, (ast.With, ast.AsyncWith)) else ():
            context = item.context_expr
            if not isinstance(context, ast.Call) or site.resolve(context.func) not in _CONTEXTS:
                raise NotProven(f"`with {short(context)}` around it may change what it does")


def _may_be_moved(site: Site, statement: ast.stmt) -> bool:
    try:
        _check_alone(site, statement)
    except NotProven:
        return False
    return True


def _check_alone(site: Site, statement: ast.stmt, kind: type[NotProven] = NotProven) -> None:
    """NotProven, or this kind of it, for what no operator holds, whatever is taken in with it."""

    def look() -> str:
        try:
            demand_movable(walk(statement), (), FORMS, KNOWS_NAMES | OF_A_CLASS)
            Names(site, [statement]).effects()
        except NotProven as reason:
            return str(reason)
        return ""

    if reason := site.remembered("moved into an operator", statement, look, anywhere=True):
        raise kind(reason)


class Names:
    """What statements read from before them, and a function that takes it and holds them."""

    def __init__(self, site: Site, statements: Sequence[ast.stmt], results: Sequence[str] = ()) -> None:
        self.site = site
        body = list(statements)
        if results:
            values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in results]
            made = ast.Return(values[0] if len(values) == 1 else ast.Tuple(values, ast.Load()))
            body.append(ast.fix_missing_locations(ast.copy_location(made, statements[-1])))
        scope, own = site.evaluator.scope, site.evaluator.scope.self_name
        apart = own_variables(part for each in body for part in walk(each))
        names = [part for each in body for part in walk(each) if isinstance(part, ast.Name) and id(part) not in apart]
        parts = sorted(names, key=lambda part: (part.lineno, part.col_offset))
        stored = stored_names(part for each in body for part in (each, *walk_scope(each)) if id(part) not in apart)
        read = [
            name
            for name in dict.fromkeys(part.id for part in parts)
            if scope.is_local(name) and (name not in stored or reads_before_writing(body, name))
        ]
        self.given = [name for name in read if name != own]
        self.own = own if own in read else ""
        arguments = [ast.arg(name) for name in ([self.own] if self.own else []) + self.given]
        plain = ast.arguments(
            posonlyargs=[], args=arguments, vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
        )
        first = statements[0]
        self.function = ast.FunctionDef("outlined", plain, body, [], lineno=first.lineno, col_offset=first.col_offset)

    def effects(self) -> tuple[FunctionEffects, frozenset[str]]:
        """What the statements do, and the names from before them whose memory they change."""
        losses: set[str] = set()
        effects = FunctionEffects(self.site, layers=losses)
        changed = effects.changed(self.function, own=self.own or "")
        for each in sorted(losses):
            if not holds_ctc_loss(self.site, ast.parse(f"{self.own}.{each}", mode="eval").body):
                raise NotProven(f"`{self.own}.{each}` may have side effects when it is called")
        effects.read |= losses
        return effects, changed


class _Region:
    """Statements that can be one operator. NotProven where they cannot."""

    def __init__(self, site: Site, statements: Sequence[ast.stmt]) -> None:
        demand_torch(site)
        self.site, self.last = site.reached(statements[0]), site.reached(statements[-1])
        self.statements = statements
        self.returns = isinstance(statements[-1], ast.Return)
        self._check_ways_out()
        self.results = self._read_later()
        names = Names(self.site, statements, self.results)
        self.given, self.own, function = names.given, names.own or "", names.function
        self._check_given()
        self.effects, changed = names.effects()
        self.numbers = [name for name in self.given if name in changed and self._is_number(name)]
        self.copied = [name for name in self.given if name in changed and name not in self.numbers]
        others = {name for name in self.copied if not self.site.sole_owner(name) or self._is_lost(name)}
        others |= changed - {*self.given}
        if others or self.effects.set or self.effects.off:
            raise _TakesBefore(f"the statements change `{min({*others, *self.effects.set, *self.effects.off})}`")
        self.effects.demand_separate_results(function, self.own)
        owned = {name for name in self.results if name in self.given and self.site.sole_owner(name)}
        try:
            self.effects.demand_own_results(function, self.own, owned)
        except NotProven as reason:
            raise _TakesBefore(str(reason)) from None
        check_gradient(self.site, function)
        self.shapes = _Shapes(self.site, self.last, function)

    def _is_lost(self, name: str) -> bool:
        """True for a tensor that the operator writes a copy of, which it does not give, and that is read behind it."""
        return name not in self.results and not self.returns and self.last.live_after(name)

    def _is_number(self, name: str) -> bool:
        """True for what only constants are assigned to outside of the statements: `total = 0`."""
        scope = self.site.evaluator.scope
        inside = {id(part) for each in self.statements for part in walk(each)}
        stores = {
            id(part) for part in walk_scope(scope.node) if is_name(part, name) and isinstance(part.ctx, ast.Store)
        }
        plain = {
            id(target)
            for part in walk_scope(scope.node)
            if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant)
            for target in part.targets
        }
        given = any(each.arg == name for each in parameters(scope.node))
        return not given and bool(stores & plain) and stores <= plain | inside

    def _check_ways_out(self) -> None:
        parts = [part for each in self.statements for part in walk(each)]
        jumps = jumps_out(self.statements)
        if isinstance(self.statements[0], ast.If) and self.site.is_elif(self.statements[0]):
            raise NotProven("the statement is an `elif`")
        for part in parts:
            if id(part) in jumps or (isinstance(part, ast.Return) and not self.returns):
                raise NotProven(f"`{short(part)}` leaves the statements")

    def _read_later(self) -> list[str]:
        """The names that the statements bind and that are read behind them."""
        if self.returns:
            return []
        parts = [part for each in self.statements for part in (each, *walk_scope(each))]
        apart = own_variables(parts)
        places = {
            part.id: (part.lineno, part.col_offset)
            for part in reversed(parts)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and id(part) not in apart
        }
        found = [name for name in sorted(places, key=places.__getitem__) if self.last.live_after(name)]
        if not found:
            raise _TakesBefore("the statements give nothing")
        return found

    def _check_given(self) -> None:
        parts = [part for each in self.statements for part in walk(each) if isinstance(part, ast.Name)]
        if not any(part.id in self.given and seems_tensor(self.site, part) for part in parts):
            raise NotProven("the statements read no tensor that has a name")
        if "_" in self.given:
            raise NotProven("`_` is what the operator calls the module that it is not given")
        for name in self.given:
            if not is_bound(self.site, name):
                raise _TakesBefore(f"`{name}` may be unbound before the statements")
        for part in (part for each in self.statements for part in walk(each)):
            if isinstance(part, ast.keyword) and part.arg == "generator":
                raise NotProven(f"`{short(part.value)}` is a generator, which an operator does not take")
            if isinstance(part, ast.Subscript) and _looks_up_a_word(part) and root_of(part) in self.given:
                raise NotProven(f"`{root_of(part)}` is a dict, which an operator does not take")
        facts = self.site.evaluator.scope.class_facts
        if self.own and (facts is None or not facts.is_module):
            raise NotProven(f"the statements read `{self.own}`, which is no `nn.Module`")

    # text

    def edit(self) -> Edit:
        """The compile path and the definitions that it needs."""
        if self.effects.parts:
            raise NotProven(f"`{next(iter(self.effects.parts.values()))}` is not held by the instance itself")
        site, function = self.site, self.site.evaluator.scope.node.name
        operator = operator_name(site, "_and_".join(self.results[:3]) if self.results else f"end_of_{function}")
        start, end = site.span(self.statements[0]), site.span(self.statements[-1])
        whole = Span(start.start_line, start.start_column, end.end_line, end.end_column)
        handed = [*([self.own or "None"] if self._keeps_state else []), *self.given]
        called = f"{operator}({', '.join(handed)})"
        header = site.header("if", ["torch.compiler.is_dynamo_compiling()", *self._conditions()])
        taken = f"return {called}" if self.returns else f"{', '.join(self.results)} = {called}"
        path: CompilePath | str = f"{_COMMENT}\n" + under(header, taken)
        rest = ("\n", Original(whole)) if self.returns else ("\nelse:\n    ", Original(whole, 1))
        return Edit((Replacement(whole, (path, *rest)),), ("torch",), self._helpers(operator))

    @property
    def _keeps_state(self) -> bool:
        """Whether the operator is that of layers, which holds parameters and the state of random numbers."""
        return bool(self.own) or self.effects.random

    def _conditions(self) -> Iterator[str]:
        site, own = self.site, self.own
        # What `total += x` changes is a number where it was one before.
        yield from (f"isinstance({name}, (int, float))" for name in self.numbers)
        for name in sorted(self.effects.layers or ()):
            yield f"type({own}.{name}) is {site.torch}.nn.CTCLoss"
            each = reduction_of(site, ast.Attribute(ast.Name(own), name)) == "none"
            yield f'{own}.{name}.reduction {"==" if each else "!="} "none"'
        yield from dict.fromkeys(lengths_asked(site, self.statements, self.given))
        if self.effects.methods:
            yield f"type({own}) is {(site.evaluator.scope.class_qualified or '').rpartition('.')[2]}"
        if not self._keeps_state:
            yield call(site, "_fits_a_function", self.given, 1).lstrip()
            return
        parts = tuple_of_words(sorted(self.effects.read))
        numbers = numbers_read(site, self.effects, own) if own else []
        yield call(site, "_fits_an_operator", ["__name__", own or "None", parts, *self.given, *numbers], 1).lstrip()

    def _helpers(self, operator: str) -> tuple[Helper, ...]:
        site, shapes = self.site, f"{operator}_shapes"
        shared = one_operator(site) if self._keeps_state else functions(site, gradient=self.shapes.smooth)
        given = [*([self.own or "_"] if self._keeps_state else []), *self.given]
        parts = "".join(f'"{each}", ' for each in sorted(self.effects.read))
        back = [] if self.returns else [f"    return {', '.join(self.results)}"]
        text = [
            f"@{shared[-1].name}({parts}shapes={shapes}{self.shapes.nested})",
            def_line(operator, given),
            f'    """Statements of `{site.function}` as one operator for torch.compile."""',
            *(f"    {name} = {name}.clone()" for name in self.copied),
            moved(site, self.statements),
            *back,
        ]
        after = definition_before(site)
        return (
            *shared,
            Helper(shapes, empty_results(self.shapes, shapes, given), after=(*after, shared[-1].name)),
            Helper(operator, "\n".join(text), after=(*after, shared[-1].name, shapes)),
        )


def _looks_up_a_word(part: ast.Subscript) -> bool:
    """True for `params["order"]`."""
    word = part.slice.value if isinstance(part.slice, ast.Constant) else None
    return isinstance(part.value, ast.Name) and isinstance(word, str)


def is_bound(site: Site, name: str) -> bool:
    """True for a local that certainly has a value where the statements begin."""
    if is_bound_before(site, name, (ast.Assign, ast.AugAssign)):
        return True
    if any(isinstance(part, ast.Delete) for part in walk_scope(site.evaluator.scope.node)):
        return False
    bodies = [body for body, _ in site.place.blocks]
    loops = [each for each in site.place.parents if isinstance(each, ast.For) and any(each.body is b for b in bodies)]
    return any(is_name(part, name) for each in loops for part in walk(each.target))


class _Shapes(ResultShapes):
    """The same for results that are names which the statements bind."""

    def __init__(self, site: Site, last: Site, function: ast.FunctionDef) -> None:
        following = last.following()
        self._after = last.at(following[0]) if following else None
        super().__init__(site, function, function.body)

    def _return(self, node: ast.Return, needed: set[str]) -> ast.stmt:
        if self._site.at(node) is not None or node.value is None:
            return super()._return(node, needed)
        values = elements_of(node.value)
        for value in values:
            assert isinstance(value, ast.Name)
            if value.id in self._unsized:
                raise NotProven(f"the size of a result depends on data: `{value.id}`")
            known = self._after.value(value) if self._after is not None else None
            if known is None or not known.is_tensor or known.hint:
                self.demand_made(value.id)
            self.note_dtype((known.dtype if known is not None else None) or "")
            needed.add(value.id)
        self.results = len(values)
        return ast.Return(ast.List(list(values), ast.Load()))
