"""Where an expression may get its value from, in its function, from the callers in its file, and from what it calls.

The dataflow knows one function, and code without annotations tells it little. What is followed here is a guess: enough
for advice on a line that may break the graph, and for an edit whose header asks for the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, tree_of
from graphmend_codemod.analysis.patterns import is_attribute, is_literal, is_name, last_name, operands_of, sides_of
from graphmend_codemod.analysis.scope import dotted, of_kind, parameter_names, parameters, walk_scope
from graphmend_codemod.analysis.value_flow import returned
from graphmend_codemod.project.index.facts import Home
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.texts.numbers import HELPERS
from graphmend_codemod.rules.proofs.untraced import other_files
from graphmend_codemod.rules.proofs.untraced.bindings import (
    appended_to,
    bound_to,
    element_of,
    fields_of,
    has_name,
)
from graphmend_codemod.rules.proofs.untraced.frames import Files, Frame, Source

_STEPS = 10
AS_THEIR_ARGUMENTS = frozenset({"builtins.min", "builtins.max", "builtins.sum", "builtins.abs", "builtins.next"})
"""Functions whose result is one of their arguments, or made of them."""
_AS_THEIR_OWNERS = torch_api.RETURNS_TENSOR | {"astype"}
"""Methods of tensors and arrays whose result is one as well."""


Leaf = Callable[["Guess", Source], "bool | None"]
"""Whether an expression is what is looked for; None where its parts, or where it comes from, have to tell."""


class Guess(Files):
    """Follows one expression back through names, containers, calls and callers, a few steps."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._seen: dict[tuple[int, int, int], ast.expr] = {}  # holds what it has seen: an address is given away again

    @property
    def _own(self) -> Frame:
        # Not kept: it leads back here, and the collector of such circles is off while files are judged.
        return Frame(self.site.evaluator.scope.node, files=self)

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
        self._seen[key] = source.node
        answer = leaf(self, source)
        if answer is not None:
            return answer
        return any(self._holds(each, leaf, steps - 1) for each in _sources(self, source))


def _sources(guess: Guess, source: Source) -> Iterator[Source]:
    """The expressions that one may get its value from: assignments, arguments, results, elements, operands."""
    node, frame = source
    if isinstance(node, ast.Name):
        yield from (Source(each, frame) for each in guess.before(frame, node))
        yield from _given(guess, frame, node.id)
        outer = None if has_name(frame.node, node.id) else guess.around(frame)
        if outer is not None and has_name(outer.node, node.id):
            yield Source(node, outer)
    elif isinstance(node, ast.Attribute):
        yield from _stored(guess, source, node)
    elif isinstance(node, ast.Subscript):
        yield from _elements(guess, source, node)
    elif isinstance(node, ast.Call):
        yield from _results(guess, source, node)
    else:
        yield from (Source(each, frame) for each in _operands(node))


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.IfExp):
        every = of_kind(operands_of(node.test, ast.And), ast.Call)
        traces = any(last_name(each.func) == "is_tracing" for each in every)
        return [node.orelse] if traces else [node.body, node.orelse]
    return [node.value] if isinstance(node, ast.NamedExpr) else sides_of(node)


def _given(guess: Guess, frame: Frame, name: str) -> Iterator[Source]:
    """What callers give for a parameter without an annotation."""
    given = next((each for each in parameters(frame.node) if each.arg == name), None)
    if given is None or given.annotation is not None or guess.calls_at(frame) is None:
        return
    if frame.through is not None:
        call, origin = frame.through
        argument = (frame.definition or Definition(frame.node.name, frame.node)).arguments(call).get(name)
        if argument is not None:
            yield Source(argument, origin)
        return
    if frame.definition is None:
        yield from _given_inside(guess, frame, name)
        return
    for home, caller, call in callers(guess, frame, frame.definition):
        argument = frame.definition.arguments(call).get(name)
        if argument is not None:
            yield Source(argument, Frame(caller.node, caller, home=home))


def _given_inside(guess: Guess, frame: Frame, name: str) -> Iterator[Source]:
    """The same for a function that is defined in another one, which calls it by its name."""
    outer, inner = guess.around(frame), frame.node
    for each in walk_scope(outer.node) if outer is not None else ():
        if isinstance(each, ast.Call) and is_name(each.func, inner.name):
            argument = Definition(inner.name, inner).arguments(each).get(name)
            if argument is not None and outer is not None:
                yield Source(argument, outer)


def _stored(guess: Guess, source: Source, node: ast.Attribute) -> Iterator[Source]:
    """What the function gives `state.done`, and what the classes of the file give `self.done` or `self.part.done`."""
    frame, spelled = source.frame, dotted(node)
    for each in walk_scope(frame.node) if spelled is not None else ():
        if isinstance(each, ast.Assign) and spelled in map(dotted, each.targets):
            yield Source(each.value, frame)
    if not isinstance(node.value, (ast.Name, ast.Attribute, ast.Call)) or dotted(node.value) in _CONFIGURATIONS:
        return
    yield from _fields(guess, source, node)
    definition, calls = frame.definition, guess.calls_at(frame)
    owner = calls.class_of(definition, node.value) if calls is not None and definition is not None else None
    if calls is None:
        return
    if owner is None and isinstance(node.value, ast.Name):
        made = (each.func for each in guess.before(frame, node.value) if isinstance(each, ast.Call))
        owner = next((each.id for each in made if isinstance(each, ast.Name) and calls.class_named(each.id)), None)
    if owner is None:
        return
    for value in calls.assigned(owner, node.attr):
        method = calls.around(value.lineno) or definition
        if method is not None:
            yield Source(value, Frame(method.node, method, home=frame.home))
    key = calls.method(owner, node.attr)
    getter = calls.definitions[key] if key is not None else None
    if getter is not None and any((dotted(each) or "").endswith("property") for each in getter.node.decorator_list):
        yield from _returned(Frame(getter.node, getter, home=frame.home), None)


_CONFIGURATIONS = frozenset({"config", "self.config"})


def _fields(guess: Guess, source: Source, node: ast.Attribute) -> Iterator[Source]:
    """What a record was made of: `out.loss` of `Out(loss=x.mean())`, also where a function of the file made it."""
    frame = source.frame
    for each in guess.before(frame, node.value) if isinstance(node.value, ast.Name) else [node.value]:
        if not isinstance(each, ast.Call):
            continue
        made = [(each, frame)]
        maker = callee(guess, Source(each, frame), each)
        if maker is not None:
            returned = (part.node for part in _returned(maker, None))
            made += [(part, maker) for part in returned if isinstance(part, ast.Call)]
        for call, home in made:
            kind = dotted(call.func) or ""
            if not kind.rpartition(".")[2][:1].isupper():
                continue
            yield from (Source(word.value, home) for word in call.keywords if word.arg == node.attr)
            names = _fields_of(guess, home, kind)
            pairs = zip(names, call.args, strict=False)
            yield from (Source(given, home) for name, given in pairs if name == node.attr)


def _fields_of(guess: Guess, frame: Frame, kind: str) -> list[str]:
    if guess.calls_at(frame) is None:
        return []
    text = guess.site.source.text if frame.home is None else frame.home.text
    return fields_of(tree_of(text), kind)


def _elements(guess: Guess, source: Source, node: ast.Subscript) -> Iterator[Source]:
    """The tensor that is indexed, or what a container holds: `outputs[0]`, `state["mask"]`, `shape_of(x)[1]`."""
    base, frame = node.value, source.frame
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    held = [base, *(guess.before(frame, base) if isinstance(base, ast.Name) else ())]
    if isinstance(base, ast.Name):
        yield from (Source(each, frame) for each in appended_to(frame.node, base.id))
    for each in held:
        if isinstance(each, ast.Dict):
            pairs = zip(each.keys, each.values, strict=True)
            yield from (Source(v, frame) for k, v in pairs if is_literal(k, key))
        elif isinstance(each, (ast.Tuple, ast.List)):
            yield from (Source(one, frame) for one in each.elts)
        elif isinstance(each, (ast.ListComp, ast.GeneratorExp)):
            yield Source(each.elt, frame)
        elif isinstance(each, ast.Call) and isinstance(key, int) and callee(guess, Source(each, frame), each):
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
    definition, calls = (frame.definition, guess.calls_at(frame)) if own else (None, None)
    if definition is not None and calls is not None:
        every = (each for each in calls.definitions.values() if each.owner == definition.owner and each != definition)
        yield from (Frame(each.node, each, home=frame.home) for each in every)


def _results(guess: Guess, source: Source, node: ast.Call, position: int | None = None) -> Iterator[Source]:
    """What a function of the file returns, or its element at a position; the arguments of `min` and `max`."""
    if guess.resolve(source, node.func) in AS_THEIR_ARGUMENTS:
        one = len(node.args) == 1 and getattr(node.func, "id", "") != "abs"
        yield from (Source(element_of(each, 0) if one else each, source.frame) for each in node.args)
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        item = ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
        yield Source(item, source.frame)
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr in _AS_THEIR_OWNERS:
        own = is_name(node.func.value, "self")
        if not own:  # `x.index_select(0, i)`, `x.split(2)`, where nothing else tells what `x` is
            yield Source(node.func.value, source.frame)
    frame = callee(guess, source, node)
    if frame is None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = name in parameter_names(source.frame.node)
        if given or any(isinstance(each, ast.Lambda) for each in bound_to(source.frame.node, name)):
            yield from (Source(each, source.frame) for each in node.args)  # `f(x)`, where `f` is given or a lambda
        return
    if frame.node.name not in HELPERS:  # these give numbers, whatever they are given
        yield from _returned(frame, position)


def _returned(frame: Frame, position: int | None) -> Iterator[Source]:
    """What a function returns, or the element of it at a position."""
    for value in returned(frame.node):
        if isinstance(value, ast.Tuple) and position is not None:
            yield from (Source(one, frame) for one in value.elts[position : position + 1])
        elif not isinstance(value, ast.Tuple):
            yield Source(value, frame)


# Which function a call runs, and who calls one: in the file of the call, or in another


def callers(files: Files, frame: Frame, definition: Definition) -> Iterator[tuple[Home | None, Definition, ast.Call]]:
    """The calls of a function, first those in its file; of a constructor those of its class."""
    calls, made = files.calls_at(frame), definition.node.name == "__init__" and bool(definition.owner)
    if calls is not None:
        here = other_files.constructions(calls, definition.owner) if made else calls.callers(definition)
        yield from ((frame.home, caller, call) for caller, call in here)
    if made or not definition.owner:
        qualified = f"{files.module_of(frame)}.{definition.owner if made else definition.qualname}"
        yield from other_files.callers(files.index, qualified)


def callee(files: Files, source: Source, node: ast.Call) -> Frame | None:
    """The function that a call runs, also one that is defined inside of the caller, or in another file."""
    found = _callee_here(files, source, node) if _may_be_of_file(files, source, node.func) else None
    return found or _callee_elsewhere(files, source, node)


def _callee_here(files: Files, source: Source, node: ast.Call) -> Frame | None:
    frame, calls = source.frame, files.calls_at(source.frame)
    definition = frame.definition
    found = calls.callee(definition, node) if calls is not None and definition is not None else None
    if found is not None:
        return Frame(found.node, found, through=(node, frame), home=frame.home)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and calls is not None:
        key = calls.method(node.func.value.id, node.func.attr)
        method = calls.definitions[key] if key is not None else None
        return Frame(method.node, method, through=(node, frame), home=frame.home) if method is not None else None
    for each in walk_scope(frame.node) if isinstance(node.func, ast.Name) else ():
        if isinstance(each, ast.FunctionDef) and each.name == node.func.id:  # type: ignore[attr-defined]
            return Frame(each, None, through=(node, frame), home=frame.home)
    return None


def _callee_elsewhere(files: Files, source: Source, node: ast.Call) -> Frame | None:
    """The function of another file that a call runs, by what the index says of names, classes and attributes."""
    qualified = files.resolve(source, node.func)
    root, *attributes = (dotted(node.func) or "").split(".")
    if qualified is None and root == "self":
        qualified = other_files.method_of(files.index, files.class_facts(source.frame), attributes)
    elif qualified is None and root:
        name = ast.copy_location(ast.Name(root, ast.Load()), node)
        made = (each.func for each in files.before(source.frame, name) if isinstance(each, ast.Call))
        kinds = (files.resolve(source, each) for each in made)
        facts = next((each for kind in kinds if kind and (each := files.index.class_facts(kind)) is not None), None)
        qualified = other_files.method_of(files.index, facts, attributes)
    found = other_files.defined(files.index, qualified) if qualified is not None else None
    if found is None:
        return None
    return Frame(found[1].node, found[1], through=(node, source.frame), home=found[0])


def _may_be_of_file(files: Files, source: Source, function: ast.expr) -> bool:
    """False for what comes from elsewhere for certain: nobody needs to read the file for it."""
    called = files.resolve(source, function)
    if called is not None:
        return called.startswith(f"{files.module_of(source.frame)}.")
    if isinstance(function, ast.Attribute):
        return is_name(function.value, "self") and _is_near(files, source.frame, function.attr)
    return isinstance(function, ast.Name)


def _is_near(files: Files, frame: Frame, name: str) -> bool:
    """True for a method or a layer of the instance whose class stands in the file of the frame."""
    facts = files.site.evaluator.scope.class_facts if frame.home is None else files.class_facts(frame)
    found = facts.methods.get(name) if facts is not None else None
    fact = facts.attributes.get(name) if facts is not None else None
    found = found or (fact.callee if fact is not None else None)
    return found is not None and found.startswith(f"{files.module_of(frame)}.")
