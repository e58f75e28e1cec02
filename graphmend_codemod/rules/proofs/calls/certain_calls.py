"""Whether a call runs the function of this module that it seems to run, judged over the whole project.

Code elsewhere may put another layer into an attribute, replace a method in a subclass or assign one, or hook into a
layer.
Where a class decides, the compile path asks for it while Dynamo traces (`type(self.part) is Part`, which it folds).
Nobody can ask whether a method was assigned or a hook registered: there the project's files tell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import is_within, name_imported, stores_name, without_numbers
from graphmend_codemod.analysis.scope import FunctionNode, dotted, parameter_names, walk, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import closure
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site

_CALLED = frozenset({"forward", "__call__"})
_BUILTINS = ("type", "all", "getattr", "isinstance", "zip")


class Link(NamedTuple):
    """A call that is followed: by whom, the call, and what it seems to run.

    `owners` are all classes of the module that the called layer may have, where its rule knows them; with `chosen`,
    only an instance of the one class gets there. `same` says that it is a method of the caller's own instance, as
    `super().forward` is. `only` is an attribute of the caller's own instance and its value, as Python spells it, where
    the call is made: others may hold another layer.
    """

    caller: Definition
    call: ast.Call
    callee: Definition
    owners: tuple[str, ...] = ()
    chosen: bool = False
    same: bool = False
    only: tuple[str, str] = ("", "")


class Route(NamedTuple):
    """How the code of a site gets to an instance: `instance` spells it, inside of these loops (name, what is iterated).

    An empty `instance` stands for a function that has none, and `exact` for one whose class is asked for. One that is
    not `sure` may be None, and one that is `chosen` may be of another class, without its attributes.
    """

    instance: str
    loops: tuple[tuple[str, str], ...] = ()
    exact: bool = False
    sure: bool = True
    chosen: bool = False


class CertainCalls:
    """Collects what a compile path has to ask for the calls that its rule follows."""

    def __init__(self, site: Site, calls: ModuleCalls, function: Definition | None = None) -> None:
        """The compile path stands in the function of the site, or in another `function` of the module."""
        self._site, self._calls = site, calls
        scope = site.evaluator.scope
        self._own = (scope.self_name or "") if function is None else instance_name(function)
        self._names = scope.locals | scope.closure if function is None else local_names(function.node)
        self._where = site.function if function is None else function.qualname
        self._asked: dict[tuple[tuple[str, str], ...], dict[tuple[str, str], None]] = {}

    def start(self) -> Route:
        """The instance that the site's function belongs to."""
        return Route(self._own)

    def conditions(self) -> list[str]:
        """The trace-time conditions, in the order in which calls were followed."""
        found: list[str] = []
        for loops, pairs in self._asked.items():
            asked: dict[str, list[str]] = {}
            for instance, question in pairs:
                asked.setdefault(question, []).append(instance)
            each = [
                question.format(instances[0])
                if len(instances) == 1
                else self._all([question.format("each")], [("each", f"({', '.join(instances)})")])
                for question, instances in asked.items()
            ]
            found += [self._all(each, loops)] if loops else each
        return found

    def _all(self, conditions: Sequence[str], loops: Sequence[tuple[str, str]]) -> str:
        """`all(... for layer in self.layers)`, on several lines where one would be too long."""
        over = [
            line
            for name, iterated in loops
            for line in f"for {name} in {iterated}".replace(" if ", "\nif ").split("\n")
        ]
        line = f"all({' and '.join(conditions)} {' '.join(over)})"
        if not self._site.is_too_long(self._site.indentation(1) + len(f"and {line}")):
            return line
        lines = [" and ".join(conditions)]
        if self._site.is_too_long(self._site.indentation(2) + len(lines[0])):
            lines = [f"{'and ' if number else ''}{self._broken(each)}" for number, each in enumerate(conditions)]
        inside = "".join(f"\n        {each}" for each in (*lines, *over))
        return f"all({inside}\n    )"

    def _broken(self, condition: str) -> str:
        """A condition in an `all(...)`, its two parts on lines of their own where it is too long."""
        first, _, second = condition.removeprefix("(").removesuffix(")").partition(" or ")
        long = self._site.is_too_long(self._site.indentation(2) + len(f"and {condition}"))
        return f"(\n            {first}\n            or {second}\n        )" if long and second else condition

    def demand_class(self, route: Route, *owners: str, chosen: bool = False, unless: str = "") -> None:
        """Let the compile path ask for the class of an instance, as the top level of this module spells it.

        A route that is not `sure` may lead to None; `chosen` asks only those that are instances of the class, and
        `unless` is a condition under which nobody asks.
        """
        self.demand_names(route, *owners)
        classes = [*owners, *(() if route.sure else ("type(None)",))]
        question = f"type({{0}}) is {classes[0]}" if len(classes) == 1 else f"type({{0}}) in ({', '.join(classes)})"
        if chosen:
            question = f"({question} or not isinstance({{0}}, {owners[0]}))"
        elif unless:
            question = f"({question} or {unless})"
        self._asked.setdefault(route.loops, {})[route.instance, question] = None

    def demand_names(self, route: Route, *owners: str) -> None:
        """NotProven where a class, or a builtin that asks for it, is called otherwise in the function."""
        scope = self._site.evaluator.scope
        for name in (*(owner.partition(".")[0] for owner in owners), *_BUILTINS):
            means = scope.resolve_global(name)
            builtin = name in _BUILTINS
            other = means not in {None, f"builtins.{name}"} if builtin else means is None
            if other or name in self._names or any(name == each for each, _ in route.loops):
                raise NotProven(f"the name `{name}` means something else in `{self._where}`")

    def follow(self, route: Route, link: Link) -> Route:
        """The instance that a followed call gets to; NotProven if the call may run another function."""
        caller, call, callee = link.caller, link.call, link.callee
        if not callee.owner:
            self._demand_function(callee.qualname)
            return Route("")
        if link.same:
            return route
        if link.owners:
            layer = self._instance(route, caller, call.func)
            if layer is None or layer == route:
                raise NotProven(f"cannot infer what `{short(call.func)}` in `{caller.qualname}` calls")
            unknown = next((each for each in link.owners if not self._calls.class_named(each)), None)
            if unknown is not None:
                raise NotProven(f"cannot infer the classes that `{unknown}` names")
            attribute, value = link.only
            own = self._attribute(route, caller.owner, attribute).instance if attribute else ""
            unless = f"{own} != {value}".replace("{", "{{").replace("}", "}}") if attribute else ""
            self.demand_class(layer, *link.owners, chosen=link.chosen, unless=unless)
            self.demand_method({*link.owners, callee.owner}, callee.node.name, dotted(call.func) or "")
            return layer._replace(exact=True, chosen=link.chosen or bool(attribute) or len(link.owners) > 1)
        node, attribute = call.func, callee.node.name
        called = isinstance(node, ast.Attribute) and node.attr == attribute
        receiver = node.value if called and isinstance(node, ast.Attribute) else node
        owner = self._calls.class_of(caller, receiver)
        reached = self._instance(route, caller, receiver)
        if owner is None or reached is None:
            raise NotProven(f"cannot infer what `{short(node)}` in `{caller.qualname}` calls")
        if reached == route and not route.exact:
            self.demand_own(reached, owner, attribute)
        elif reached != route:
            self.demand_class(reached, owner)
            reached = reached._replace(exact=True)
        self.demand_method({owner, callee.owner}, attribute, dotted(receiver) or short(receiver))
        return reached

    def demand_same_method(self, route: Route, method: Definition) -> None:
        """Let the compile path ask whether its instance has this method: another one may not take its arguments."""
        name = method.node.name
        self.demand_names(route, method.owner)
        self._asked.setdefault(route.loops, {})[route.instance, f"type({{0}}).{name} is {method.owner}.{name}"] = None

    def demand_kinds(self, question: str, only: str, layers: str, kinds: str) -> None:
        """Let the compile path ask a question about the layers that a list of its own instance says to be of a kind."""
        if not (layers.startswith(f"{self._own}.") and kinds.startswith(f"{self._own}.")):
            raise NotProven(f"cannot ask for `{kinds}` in `{self._where}`")
        self.demand_names(Route(self._own, (("layer", layers), ("kind", kinds))))
        over = f"zip({layers}, {kinds})" + (f" if kind == {only}" if only else "")
        self._asked.setdefault((("layer, kind", over),), {})["layer", question] = None

    def demand_own(self, route: Route, owner: str, method: str) -> None:
        """Let the compile path ask for the class of its instance where an heir has another method of this name."""
        if self._heirs_with_another(owner, method):
            self.demand_class(route, owner)

    def demand_layer(self, route: Route, caller: Definition, layer: ast.expr, owner: str) -> None:
        """Let the compile path ask for the class of a layer that a function of the instance calls."""
        reached = self._instance(route, caller, layer)
        if reached is None or reached == route:
            raise NotProven(f"cannot infer what `{short(layer)}` in `{caller.qualname}` calls")
        self.demand_class(reached, owner)
        self._demand_no_hook((dotted(layer) or "").rpartition(".")[2])

    def follow_all(
        self, start: Route, first: Sequence[Definition], links: Sequence[Link]
    ) -> list[tuple[Route, Definition]]:
        """Follow these calls wherever they lead to from some functions, each for all instances that it gets to.

        The functions that were followed, each with its instances.
        """

        def followed(place: tuple[Route, Definition]) -> Iterator[tuple[Route, Definition]]:
            route, function = place
            return ((self.follow(route, each), each.callee) for each in links if each.caller.node is function.node)

        return list(closure([(start, each) for each in first], followed))

    def _demand_function(self, name: str) -> None:
        bound = sum(each.name == name for each in self._site.summary.bindings)
        if bound > 1:
            raise NotProven(f"`{name}` is bound more than once at the top level")
        for path, write in self._site.evaluator.scope.index.writers(name):
            raise NotProven(f"`{write.receiver}.{name}` is assigned in {path}")

    def _heirs_with_another(self, owner: str, method: str) -> bool:
        index, name = self._site.evaluator.scope.index, f"{self._site.summary.name}.{owner}"
        own = index.class_facts(name)
        for heir in index.heirs(name):
            facts = index.class_facts(heir)
            if facts is None or own is None or facts.methods.get(method) != own.methods.get(method):
                return True
            if method in facts.attributes:
                return True
        return False

    def demand_method(self, owners: set[str], method: str, receiver: str) -> None:
        """NotProven where a file of the project assigns the method of one of these classes, or hooks into a layer."""
        last = receiver.rpartition(".")[2]
        for path, write in self._site.evaluator.scope.index.writers(method):
            # Every layer has a `forward`: only one that is spelled alike counts.
            if method not in _CALLED or write.receiver.rpartition(".")[2] in owners | {last}:
                raise NotProven(f"`{write.receiver}.{method}` is assigned in {path}")
        if method in _CALLED:
            self._demand_no_hook(last)

    def _demand_no_hook(self, layer: str) -> None:
        for path, write in self._site.evaluator.scope.index.writers(layer):
            if write.how == "hooked" and layer != "self":
                raise NotProven(f"{path} registers a hook on `{'.'.join(filter(None, (write.receiver, layer)))}`")

    def _instance(self, route: Route, caller: Definition, node: ast.expr) -> Route | None:
        """The route to what an expression of a followed function spells; None if there are no words for it."""
        if isinstance(node, ast.Subscript):
            return self._element(route, caller, node.value, "layer")
        if isinstance(node, ast.Attribute):
            inner = self._instance(route, caller, node.value)
            owner = self._calls.class_of(caller, node.value)
            return None if inner is None or owner is None else self._attribute(inner, owner, node.attr)
        if not isinstance(node, ast.Name):
            return None
        if node.id == instance_name(caller):
            return route
        iterated = _iterated(caller, node.id)
        return self._element(route, caller, iterated, node.id) if iterated is not None else None

    def _attribute(self, route: Route, owner: str, name: str) -> Route:
        """The route to an attribute, which not every instance has unless the constructor gives it in any case."""
        sure = route.sure and not route.chosen and self._is_given(owner, name)
        instance = f"{route.instance}.{name}" if sure else f'getattr({route.instance}, "{name}", None)'
        return Route(instance, route.loops, sure=sure)

    def _is_given(self, owner: str, name: str) -> bool:
        key = self._calls.method(owner, "__init__")
        while key is not None:
            constructor = self._calls.definitions[key]
            for each in constructor.node.body:
                targets = each.targets if isinstance(each, ast.Assign) else []
                if any(dotted(target) == f"{instance_name(constructor)}.{name}" for target in targets):
                    return True
            key = self._calls.inherited(constructor.owner, "__init__")
        return False

    def _element(self, route: Route, caller: Definition, iterated: ast.expr, name: str) -> Route | None:
        while isinstance(iterated, ast.Subscript) and isinstance(iterated.slice, ast.Slice):
            iterated = iterated.value
        layers = self._instance(route, caller, iterated)
        if layers is None or layers == route or not layers.sure:
            return None
        taken = {each for each, _ in layers.loops}
        while name in taken:
            name += "_"
        return Route(name, (*layers.loops, (name, layers.instance)))


def instance_name(caller: Definition) -> str:
    """The parameter of a method that is its instance, whatever its name; empty where there is none."""
    arguments = [*caller.node.args.posonlyargs, *caller.node.args.args]
    first = arguments[0].arg if caller.owner and arguments else ""
    return "" if first in caller.parameters else first


def _iterated(caller: Definition, name: str) -> ast.expr | None:
    """What the only loop that binds a name goes through, also with numbers."""
    bound = [part for part in walk_scope(caller.node) if stores_name(part, name)]
    loops = [each for each in walk_scope(caller.node) if isinstance(each, (ast.For, ast.comprehension))]
    over = [each for each in loops if bound and is_within(bound[0], each.target)]
    if len(bound) != 1 or len(over) != 1:
        return None
    target, iterated = without_numbers(over[0])
    return iterated if target is bound[0] else None


def own_definition(site: Site) -> Definition:
    """The function of a site among those of its module; NotProven in a nested one."""
    found = calls_in(site.source.text).at(site.evaluator.scope.node.lineno)
    if found is None:
        raise NotProven("it is in a nested function")
    return found


def local_names(function: FunctionNode) -> set[str]:
    """All names that a function binds, at any depth."""
    found = parameter_names(function)
    for part in walk(function):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and part is not function:
            found.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            found |= set(map(name_imported, part.names))
    return found
