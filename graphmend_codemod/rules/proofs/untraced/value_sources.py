"""Where an expression may get its value from, in its function, from the callers in its file, and from what it calls.

The dataflow knows one function, and code without annotations tells it little. What is followed here is a guess: enough
for advice on a line that may break the graph, and never for an edit.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import is_attribute, is_name
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameter_names, parameters, walk, walk_scope
from graphmend_codemod.analysis.values import Value
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.rules.framework.site import Site

_STEPS = 10
_LONGEST = 60_000
AS_THEIR_ARGUMENTS = frozenset({"builtins.min", "builtins.max", "builtins.sum", "builtins.abs", "builtins.next"})
"""Functions whose result is one of their arguments, or made of them."""


class Frame:
    """A function in which an expression stands; `own` is that of the site, of which the dataflow knows more.

    `through` is the call by which what is asked for comes from its result, and the frame of that call: parameters then
    hold what this call gives, and not what others do.
    """

    def __init__(
        self,
        node: FunctionNode,
        definition: Definition | None = None,
        guess: Guess | None = None,
        through: tuple[ast.Call, Frame] | None = None,
    ) -> None:
        self.node = node
        self.own = guess is not None
        self.through = through
        self._definition, self._guess = definition, guess

    @property
    def definition(self) -> Definition | None:
        """The function in the tree of the whole file, which is read only where somebody asks."""
        if self._definition is None and self._guess is not None and self._guess.calls is not None:
            self._definition = self._guess.calls.at(self.node.lineno)
        return self._definition


class Source(NamedTuple):
    """One expression that another one may get its value from."""

    node: ast.expr
    frame: Frame


Leaf = Callable[["Guess", Source], "bool | None"]
"""Whether an expression is what is looked for; None where its parts, or where it comes from, have to tell."""


class Guess:
    """Follows one expression back through names, containers, calls and callers, a few steps."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._seen: set[tuple[int, int, int]] = set()

    @cached_property
    def calls(self) -> ModuleCalls | None:
        """Who calls whom in the file; None where it takes longer to read than a guess is worth."""
        if len(self.site.source.text) > _LONGEST:
            return None
        try:
            return calls_in(self.site.source.text)
        except SourceError:
            return None

    @property
    def _own(self) -> Frame:
        # Not kept: it leads back here, and the collector of such circles is off while files are judged.
        return Frame(self.site.evaluator.scope.node, guess=self)

    def holds(self, node: ast.expr, leaf: Leaf) -> bool:
        """True where the leaf says yes of the expression, or of something that it may get its value from."""
        return self._holds(Source(node, self._own), leaf, _STEPS)

    def holds_in(self, node: ast.expr, frame: Frame, leaf: Leaf) -> bool:
        """The same for an expression of another frame, whatever was asked before."""
        return Guess(self.site)._holds(Source(node, frame), leaf, _STEPS // 2)

    def _holds(self, source: Source, leaf: Leaf, steps: int) -> bool:
        through = source.frame.through
        key = (id(source.node), source.frame.node.lineno, 0 if through is None else id(through[0]))
        if key in self._seen or not steps:
            return False
        self._seen.add(key)
        answer = leaf(self, source)
        if answer is not None:
            return answer
        return any(self._holds(each, leaf, steps - 1) for each in _sources(self, source))

    def resolve(self, source: Source, node: ast.expr) -> str | None:
        """The qualified name of what an expression of a frame spells."""
        if source.frame.own:
            return self.site.resolve(node)
        name = dotted(node)
        if name is None or name.partition(".")[0] in parameter_names(source.frame.node):
            return None
        return self.site.evaluator.scope.resolve_global(name)

    def value(self, source: Source) -> Value | None:
        """What the dataflow knows, in the function of the site alone."""
        return self.site.value(source.node) if source.frame.own else None


def _sources(guess: Guess, source: Source) -> Iterator[Source]:
    """The expressions that one may get its value from: assignments, arguments, results, elements, operands."""
    node, frame = source
    if isinstance(node, ast.Name):
        yield from (Source(each, frame) for each in _before(guess, frame, node.id))
        yield from _given(guess, frame, node.id)
    elif isinstance(node, ast.Attribute):
        yield from _stored(guess, source, node)
    elif isinstance(node, ast.Subscript):
        yield from _elements(guess, source, node)
    elif isinstance(node, ast.Call):
        yield from _results(guess, source, node)
    else:
        yield from (Source(each, frame) for each in _operands(node))


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.IfExp):
        traces = isinstance(node.test, ast.Call) and (dotted(node.test.func) or "").endswith("is_tracing")
        return [node.orelse] if traces else [node.body, node.orelse]
    return [node.value] if isinstance(node, ast.NamedExpr) else []


def _before(guess: Guess, frame: Frame, name: str) -> list[ast.expr]:
    """What a name is assigned in a function; in that of the site, in front of it unless it stands in a loop."""
    values = list(_assigned(frame.node, name))
    place = guess.site.place
    if frame.own and not place.in_loop:
        values = [each for each in values if each.lineno <= place.statement.lineno]
    return values


def is_assigned(function: FunctionNode, name: str) -> bool:
    """True where the function itself assigns the name."""
    return next(_assigned(function, name), None) is not None


_ASSIGNED = "graphmend_assigned"
"""Where a function's tree keeps what its names are assigned, which is asked for again and again."""


def _assigned(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    found: dict[str, list[tuple[ast.expr, ast.expr, bool]]] | None = function.__dict__.get(_ASSIGNED)
    if found is None:
        found = function.__dict__[_ASSIGNED] = _bindings(function)
    for target, value, loops in found.get(name, ()):
        yield from _looped(target, value, name) if loops else _bound(target, value, name)


def _bindings(function: FunctionNode) -> dict[str, list[tuple[ast.expr, ast.expr, bool]]]:
    """By name the targets and values of assignments, and those of loops, in one look at the function."""
    found: dict[str, list[tuple[ast.expr, ast.expr, bool]]] = {}
    for node in walk_scope(function):
        pairs: list[tuple[ast.expr, ast.expr, bool]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value, False) for target in node.targets]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            pairs = [(node.target, node.value, False)]
        elif isinstance(node, (ast.For, ast.comprehension)):
            pairs = [(node.target, node.iter, True)]
        for pair in pairs:
            for bound in {part.id for part in walk(pair[0]) if isinstance(part, ast.Name)}:
                found.setdefault(bound, []).append(pair)
    return found


def _bound(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if is_name(target, name):
        yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, each in enumerate(target.elts):
            yield from _bound(each, _element(value, position), name)


def _looped(target: ast.expr, iterated: ast.expr, name: str) -> Iterator[ast.expr]:
    """What a loop binds to a name, in step with `zip` and `enumerate`."""
    called = iterated.func.id if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) else ""
    if isinstance(iterated, ast.Call) and isinstance(target, ast.Tuple) and called in {"zip", "enumerate"}:
        steps = iterated.args if called == "zip" else [ast.copy_location(ast.Constant(0), iterated), *iterated.args[:1]]
        for each, given in zip(target.elts, steps, strict=False):
            yield from _looped(each, given, name)
    elif called not in {"range", "enumerate"} and not isinstance(iterated, ast.Constant):
        yield from _bound(target, _element(iterated, 0), name)


def _element(value: ast.expr, position: int) -> ast.expr:
    if isinstance(value, (ast.Tuple, ast.List)) and position < len(value.elts):
        return value.elts[position]
    index = ast.copy_location(ast.Constant(position), value)
    return ast.copy_location(ast.Subscript(value, index, ast.Load()), value)


def _given(guess: Guess, frame: Frame, name: str) -> Iterator[Source]:
    """What the callers in this file give for a parameter without an annotation."""
    given = next((each for each in parameters(frame.node) if each.arg == name), None)
    if given is None or given.annotation is not None or guess.calls is None or frame.definition is None:
        return
    if frame.through is not None:
        argument = frame.definition.arguments(frame.through[0]).get(name)
        if argument is not None:
            yield Source(argument, frame.through[1])
        return
    for caller, call in guess.calls.callers(frame.definition):
        argument = frame.definition.arguments(call).get(name)
        if argument is not None:
            yield Source(argument, Frame(caller.node, caller))


def _stored(guess: Guess, source: Source, node: ast.Attribute) -> Iterator[Source]:
    """What the function gives `state.done`, and what the classes of the file give `self.done` or `self.part.done`."""
    frame, spelled = source.frame, dotted(node)
    for each in walk_scope(frame.node) if spelled is not None else ():
        if isinstance(each, ast.Assign) and spelled in map(_spelled, each.targets):
            yield Source(each.value, frame)
    if not isinstance(node.value, ast.Name) or node.value.id == "config":
        return
    definition = frame.definition
    owner = guess.calls.class_of(definition, node.value) if guess.calls is not None and definition is not None else None
    if owner is None and isinstance(node.value, ast.Name):
        made = (each.func for each in _before(guess, frame, node.value.id) if isinstance(each, ast.Call))
        owner = next((each.id for each in made if isinstance(each, ast.Name) and _is_class(guess, each.id)), None)
    if guess.calls is None or owner is None:
        return
    for value in guess.calls.assigned(owner, node.attr):
        maker = guess.calls.method(owner, "__init__")
        method = guess.calls.definitions[maker] if maker is not None else definition
        if method is not None:
            yield Source(value, Frame(method.node, method))


def _is_class(guess: Guess, name: str) -> bool:
    return guess.calls is not None and guess.calls.has_class(name)


def _spelled(node: ast.expr) -> str | None:
    return dotted(node)


def _elements(guess: Guess, source: Source, node: ast.Subscript) -> Iterator[Source]:
    """The tensor that is indexed, or what a container holds: `outputs[0]`, `state["mask"]`, `shape_of(x)[1]`."""
    base, frame = node.value, source.frame
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    held = [base, *(_before(guess, frame, base.id) if isinstance(base, ast.Name) else ())]
    for each in held:
        if isinstance(each, ast.Dict):
            pairs = zip(each.keys, each.values, strict=True)
            yield from (Source(v, frame) for k, v in pairs if isinstance(k, ast.Constant) and k.value == key)
        elif isinstance(each, (ast.Tuple, ast.List)):
            yield from (Source(one, frame) for one in each.elts)
        elif isinstance(each, (ast.ListComp, ast.GeneratorExp)):
            yield Source(each.elt, frame)
        elif isinstance(each, ast.Call) and isinstance(key, int) and _callee(guess, Source(each, frame), each):
            yield from _results(guess, Source(each, frame), each, key)
    for holder in _holders(guess, frame, base) if isinstance(key, str) else ():
        for part in walk_scope(holder.node):
            if isinstance(part, ast.Assign):
                same = (ast.dump(one) for one in part.targets if isinstance(one, ast.Subscript))
                if ast.dump(ast.Subscript(base, node.slice, ast.Store())) in same:
                    yield Source(part.value, holder)
    if not isinstance(base, (ast.Tuple, ast.List, ast.Dict)):
        yield Source(base, frame)


def _holders(guess: Guess, frame: Frame, base: ast.expr) -> Iterator[Frame]:
    """The functions that may put something into a container: this one, or for `self.found` all of the class."""
    yield frame
    own = is_attribute(base, "self")
    definition = frame.definition if own else None
    if definition is not None and guess.calls is not None:
        every = guess.calls.definitions.values()
        yield from (Frame(each.node, each) for each in every if each.owner == definition.owner and each != definition)


def _results(guess: Guess, source: Source, node: ast.Call, position: int | None = None) -> Iterator[Source]:
    """What a function of the file returns, or its element at a position; the arguments of `min` and `max`."""
    if guess.resolve(source, node.func) in AS_THEIR_ARGUMENTS:
        yield from (Source(each, source.frame) for each in node.args)
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr in torch_api.RETURNS_TENSOR:
        own = is_name(node.func.value, "self")
        if not own:  # `x.index_select(0, i)`, `x.split(2)`, where nothing else tells what `x` is
            yield Source(node.func.value, source.frame)
    frame = _callee(guess, source, node)
    if frame is None:
        if isinstance(node.func, ast.Name) and node.func.id in parameter_names(source.frame.node):
            yield from (Source(each, source.frame) for each in node.args)  # `f(x)`, where `f` is an argument
        return
    for each in walk_scope(frame.node):
        value = each.value if isinstance(each, ast.Return) else None
        if isinstance(value, ast.Tuple) and position is not None:
            yield from (Source(one, frame) for one in value.elts[position : position + 1])
        elif value is not None and not isinstance(value, ast.Tuple):
            yield Source(value, frame)


def _callee(guess: Guess, source: Source, node: ast.Call) -> Frame | None:
    """The function of the file that a call runs, also one that is defined inside of the caller."""
    if not _may_be_of_file(guess, source, node.func):
        return None
    definition = source.frame.definition
    callee = guess.calls.callee(definition, node) if guess.calls is not None and definition is not None else None
    if callee is not None:
        return Frame(callee.node, callee, through=(node, source.frame))
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and guess.calls is not None:
        owner = node.func.value.id
        key = guess.calls.method(owner, node.func.attr) if guess.calls.has_class(owner) else None
        method = guess.calls.definitions[key] if key is not None else None
        return Frame(method.node, method) if method is not None else None
    for each in walk_scope(source.frame.node) if isinstance(node.func, ast.Name) else ():
        if isinstance(each, ast.FunctionDef) and each.name == node.func.id:  # type: ignore[attr-defined]
            return Frame(each, None)
    return None


def _may_be_of_file(guess: Guess, source: Source, function: ast.expr) -> bool:
    """False for what comes from elsewhere for certain: nobody needs to read the file for it."""
    called = guess.resolve(source, function)
    if called is not None:
        return called.startswith(f"{guess.site.summary.name}.")
    if isinstance(function, ast.Attribute):
        return is_name(function.value, "self") and _is_near(guess, function.attr)
    return isinstance(function, ast.Name)


def _is_near(guess: Guess, name: str) -> bool:
    """True for a method or a layer of the instance whose class stands in this file."""
    scope = guess.site.evaluator.scope
    facts, fact = scope.class_facts, scope.attribute(name)
    found = facts.methods.get(name) if facts is not None else None
    found = found or (fact.callee if fact is not None else None)
    return found is not None and found.startswith(f"{guess.site.summary.name}.")
