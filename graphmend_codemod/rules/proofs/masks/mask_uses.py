"""Uses of a mask in a module: is a mask of ones everywhere equivalent to None?

`if mask is not None: x = x * mask[:, None]` is such a use: ones change nothing, where the product has the dtype of `x`.
For a mask of zeros, `x = x + mask` is one. `judge` knows these uses.
The value is followed through assignments, results of functions, calls of functions and of layers whose class the
constructor tells, and choices by the class of a layer. Any other use is a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, tree_of
from graphmend_codemod.analysis.patterns import (
    all_given,
    is_attribute,
    is_literal,
    is_name,
    last_name,
    mentions,
    names_called,
    reads_name,
    same,
)
from graphmend_codemod.analysis.scope import SCOPES, children, dotted, parameter_names, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.analysis.value_flow import stores_of
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link
from graphmend_codemod.rules.proofs.masks.kinds_of_layers import (
    bindings,
    by_kind,
    class_for,
    classes_of,
    is_changed,
    start_of,
)
from graphmend_codemod.rules.proofs.masks.layer_choices import (
    LayerChoice,
    called_by_name,
    is_numbered,
    iterated,
    live,
    named_by,
)
from graphmend_codemod.rules.proofs.masks.mask_products import Products
from graphmend_codemod.rules.proofs.masks.mask_sums import Sums
from graphmend_codemod.rules.proofs.memory.call_results import assigned

_ANY = ("", "")


@dataclass
class MaskUses:
    """Follows one mask.

    `links` are the calls that hand it down, from the `entries`, methods of one instance. `companions` are these calls
    with whoever makes them. `agreements` are lists of kinds, as loops read them, that have to say of each layer what
    its own attribute says.
    """

    site: Site
    calls: ModuleCalls
    judge: Products | Sums
    companions: list[tuple[Definition, ast.Call]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    entries: list[Definition] = field(default_factory=list)
    agreements: dict[tuple[str, str, str, str], None] = field(default_factory=dict)
    _seen: set[tuple[str, int, str, str]] = field(default_factory=set)

    def demand(self, function: Definition, name: str, statement: ast.stmt) -> None:
        """NotProven unless all uses of `name` in a function, below a statement, are alike for ones and for None."""
        if start_of(function, statement) < statement.lineno:
            raise NotProven(f"`{name}` is assigned in a loop")
        if any(each.lineno > (statement.end_lineno or 0) for each in bindings(function, name)):
            raise NotProven(f"`{name}` is assigned again in `{function.qualname}`")
        self.entries.append(function)
        self._follow(function, name, statement.end_lineno or 0, LayerChoice(), {})

    def conditions(self, function: Definition | None = None) -> list[str]:
        """What the compile path has to ask for the calls to run what was followed; NotProven if it cannot ask.

        The path stands in the function of the site, or in another `function`.
        """
        certain = CertainCalls(self.site, self.calls, function)
        for each in self.entries:
            certain.demand_own(certain.start(), each.owner, each.node.name)
        for route, followed in certain.follow_all(certain.start(), self.entries, self.links):
            for layer, owner in self.judge.asked.get(followed.key, ()):
                certain.demand_layer(route, followed, layer, owner)
        for each_kind in self.agreements:
            certain.demand_kinds(*each_kind)
        return certain.conditions()

    def _bound(
        self, function: Definition, name: str, node: ast.AST, own: LayerChoice, layers: Mapping[str, LayerChoice]
    ) -> None:
        """Follow a name that an assignment, and nothing else, binds."""
        if len(bindings(function, name)) != 1 or name in parameter_names(function.node):
            raise NotProven(f"`{name}` is assigned again in `{function.qualname}`")
        self._follow(function, name, start_of(function, node) - 1, own, layers)

    def _given(self, function: Definition, name: str, own: LayerChoice) -> None:
        """Follow a parameter."""
        if bindings(function, name):
            raise NotProven(f"`{name}` is assigned again in `{function.qualname}`")
        self._follow(function, name, 0, own, {})

    def _follow(
        self, function: Definition, name: str, after: int, own: LayerChoice, layers: Mapping[str, LayerChoice]
    ) -> None:
        key = (function.qualname, function.node.lineno, name, own.value)
        if key in self._seen:
            return
        self._seen.add(key)
        allowed: set[int] = set()
        nodes = list(live(function.node.body, own, lambda node: self._asks_compiling(function, node)))
        for node in nodes:
            if isinstance(node, SCOPES) and mentions(node, name):
                raise NotProven(f"`{name}` is used in a function nested in `{function.qualname}`")
            looked_at = node.lineno <= after or id(node) in allowed if isinstance(node, ast.If) else True
            if isinstance(node, ast.If) and not looked_at and mentions(node.test, name):
                self.judge.demand(function, node, name)
                allowed |= {id(part) for part in walk_in_layers(node)}
        for node in nodes:
            if getattr(node, "lineno", 0) <= after:
                continue
            allowed |= self._handed_on(function, node, name, own, layers)
        for node in nodes:
            used = reads_name(node, name)
            if used and isinstance(node, ast.Name) and node.lineno > after and id(node) not in allowed:
                around = next((each for each in nodes if node in children(each)), node)
                raise NotProven(
                    f"`{short(around)}` in `{function.qualname}` may treat a mask of ones differently from None"
                )

    def _asks_compiling(self, function: Definition, node: ast.expr) -> bool:
        """True for a call of a function that says whether torch.compile traces."""
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return False
        name = self.site.resolve_global(node.func)
        if name is None or _is_local(function, (dotted(node.func) or "").partition(".")[0]):
            return False
        facts = self.site.evaluator.scope.index.function(name)
        asks = name in torch_api.COMPILING_PREDICATES or (facts is not None and facts.compiling_predicate)
        return asks and last_name(node.func) != "is_dynamo_compiling"  # which an export does not answer with yes

    def _handed_on(
        self, function: Definition, node: ast.AST, name: str, own: LayerChoice, layers: Mapping[str, LayerChoice]
    ) -> set[int]:
        """Follow the mask to where a node hands it; the names in it that are understood."""
        if isinstance(node, ast.Return) and is_name(node.value, name):
            self._returned(function)
            return {id(node.value)}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp) and isinstance(node.targets[0], ast.Name):
            chosen = node.value
            if is_name(chosen.body, name) and not mentions(chosen.test, name) and not mentions(chosen.orelse, name):
                layer = self._chosen_layer(function, chosen.test)
                self._bound(function, node.targets[0].id, node, own, {**layers, **layer})
                return {id(chosen.body)}
        if isinstance(node, ast.Assign) and (found := by_kind(function, node, name)):
            for each in found:
                layer = self._chosen_layer(function, each.test)
                self._follow(function, each.target, start_of(function, each.node) - 1, own, {**layers, **layer})
            return {id(part) for part in walk_in_layers(node.value) if is_name(part, name)}
        if isinstance(node, ast.Call):
            call = called_by_name(node)
            given = [each for each in all_given(call) if is_name(each, name)]
            if given:
                self.companions.append((function, call))
                taken = self.judge.takes(function, call, name)
                for callee, parameter in taken or ():
                    self.links.append(Link(function, call, callee))
                    self._given(callee, parameter, LayerChoice())
                if taken is not None:
                    return {id(each) for each in given}
                for callee, known, owners, only in self._callees(function, call, own, layers):
                    same = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call)
                    one_class = bool(owners and known.owner)
                    self.links.append(Link(function, call, callee, owners, one_class, same, only))
                    for parameter in _parameters_given(callee, call, name, len(given)):
                        self._given(callee, parameter, known)
            return {id(each) for each in given}
        return set()

    def _returned(self, function: Definition) -> None:
        """Follow the result of a function to those who call it."""
        short_name = function.qualname.rpartition(".")[2]
        if not short_name.startswith("_"):
            raise NotProven(f"`{function.qualname}` may be called from elsewhere")
        callers = self.calls.callers(function)
        known = {id(call.func) for _, call in callers}
        for part in walk(tree_of(self.site.source.text)) if self._occurs_elsewhere(short_name, len(callers)) else ():
            spelled = last_name(part)
            if spelled == short_name and id(part) not in known:
                raise NotProven(f"`{short(part)}` may lead to `{function.qualname}` from elsewhere")
        for caller, call in callers:
            target = assigned(caller, call)
            if target is None:
                raise NotProven(f"the result of `{short(call)}` is not assigned to a variable")
            own = is_attribute(call.func, "self")
            if not own or not self.calls.related(caller.owner, function.owner):
                raise NotProven(f"`{short(call)}` may be called on another instance")
            self.entries.append(caller)
            self._bound(caller, target, call, LayerChoice(), {})
        if not callers:
            raise NotProven(f"found no call of `{function.qualname}` in this module")

    def _occurs_elsewhere(self, name: str, calls: int) -> bool:
        """True where the module names it more often than so many calls do."""
        named = (last_name(part) == name or is_literal(part, name) for part in walk(tree_of(self.site.source.text)))
        return sum(named) > calls

    def _chosen_layer(self, function: Definition, test: ast.expr) -> dict[str, LayerChoice]:
        """What `isinstance(layer, Class)` or `layer.kind == "mamba"` says about a layer."""
        found: dict[str, LayerChoice] = {}
        if isinstance(test, ast.Call) and is_name(test.func, "isinstance"):
            layer, owner = test.args
            if isinstance(layer, ast.Name) and isinstance(owner, ast.Name):
                found = {layer.id: LayerChoice(owner=owner.id)}
        elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            if isinstance(left, ast.Attribute) and isinstance(left.value, ast.Name) and isinstance(right, ast.Constant):
                found = {left.value.id: LayerChoice(attribute=left.attr, value=repr(right.value))}
            elif isinstance(left, ast.Subscript) and isinstance(right, ast.Constant):
                found = self._listed_kind(function, left, right)
        return found if all(len(bindings(function, name)) == 1 for name in found) else {}

    def _listed_kind(self, function: Definition, listed: ast.Subscript, kind: ast.Constant) -> dict[str, LayerChoice]:
        """What `self.kinds[i] == "mamba"` says about layer number `i`, where layers ask for their own kind alike."""
        kinds = dotted(listed.value) or ""
        loops = [each for each in walk_scope(function.node) if isinstance(each, ast.For)]
        numbered = [each for each in loops if is_numbered(each, listed.slice)]
        if len(numbered) != 1 or not kinds.startswith("self.") or len(bindings(function, "self")):
            return {}
        number, layer = named_by(numbered[0])
        layers = iterated(numbered[0], layer)
        if len(bindings(function, number)) != 1 or layers is None:
            return {}
        asked = {
            part.left.attr
            for owner in self._elements(function, layer)
            for part in walk_scope(self._method(owner, "forward", exact=True).node)
            if isinstance(part, ast.Compare) and isinstance(part.left, ast.Attribute)
            if is_attribute(part.left, "self") and same(part.comparators[0], kind)
        }
        if len(asked) == 1:
            attribute = asked.pop()
            question = f'getattr({{0}}, "{attribute}", None) == kind'
            self.agreements[question, "", dotted(layers) or "", kinds] = None
            return {layer: LayerChoice(attribute=attribute, value=repr(kind.value))}
        owner = self._made_for(function, layers, kind)
        if asked or owner is None:
            return {}
        self.agreements[f"type({{0}}) is {owner}", f'"{kind.value!s}"', dotted(layers) or "", kinds] = None
        return {layer: LayerChoice(owner=owner)}

    def _made_for(self, function: Definition, layers: ast.expr, kind: ast.Constant) -> str | None:
        """The class of `[Scan(n) if kinds[n] == "mamba" else Attention(n) for n in ...]` that is made for a kind."""
        made = self.calls.constructions(function.owner, layers.attr) if isinstance(layers, ast.Attribute) else []
        listed = made[0].args[0] if len(made) == 1 and len(made[0].args) == 1 else None
        chosen = listed.elt if isinstance(listed, (ast.ListComp, ast.GeneratorExp)) else None
        test = chosen.test if isinstance(chosen, ast.IfExp) else None
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
            return None
        assert isinstance(chosen, ast.IfExp)
        alike = same(test.comparators[0], kind)
        called = chosen.body.func if alike and isinstance(chosen.body, ast.Call) else None
        return called.id if isinstance(called, ast.Name) else None

    def _callees(
        self, function: Definition, call: ast.Call, own: LayerChoice, layers: Mapping[str, LayerChoice]
    ) -> Iterator[tuple[Definition, LayerChoice, tuple[str, ...], tuple[str, str]]]:
        """The functions that a call may run, with what is known of their layer, and with all classes it may have.

        The last are an attribute of the caller's instance and its value, where others may hold another layer.
        """
        called = call.func
        if isinstance(called, ast.Name) and called.id in layers:
            chosen = layers[called.id]
            every = (chosen.owner,) if chosen.owner else tuple(self._elements(function, called.id))
            for owner in every:
                yield self._method(owner, "forward"), chosen, every, _ANY
            return
        if is_attribute(called, "self"):
            if self.calls.method(function.owner, called.attr) is not None:
                yield self._method(function.owner, called.attr), own, (), _ANY
                return
            made = sorted(set(classes_of(self.calls, function.owner, called.attr)))
            one = (
                None
                if all(map(self.calls.class_named, made))
                else class_for(self.calls, function.owner, called.attr, own)
            )
            if one is not None:
                only = (own.attribute, own.value if '"' in own.value else own.value.replace("'", '"'))
                yield self._method(one, "forward", exact=True), LayerChoice(), (one,), only
                return
            if made and "..." not in made:
                for owner in made:
                    yield self._method(owner, "forward", exact=True), LayerChoice(), tuple(made), _ANY
                return
        if isinstance(called, ast.Name) and len(bindings(function, called.id)) == 1:
            every = tuple(self._elements(function, called.id))
            for owner in every:
                yield self._method(owner, "forward", exact=True), LayerChoice(), every, _ANY
            return
        outer = isinstance(called, ast.Name) and not _is_local(function, called.id)
        callee = self.calls.callee(function, call) if outer else None
        if callee is None:
            raise NotProven(f"cannot infer what `{short(call.func)}` in `{function.qualname}` does with the mask")
        yield callee, LayerChoice(), (), _ANY

    def _method(self, owner: str, name: str, *, exact: bool = False) -> Definition:
        """A method of a class, if no other class replaces it; that does not matter where the class is `exact`."""
        key = self.calls.method(owner, name)
        if key is None:
            raise NotProven(f"`{owner}.{name}` is defined in another file")
        if not exact and self.calls.is_replaced(owner, name):
            raise NotProven(f"another class replaces `{owner}.{name}`")
        return self.calls.definitions[key]

    def _elements(self, function: Definition, name: str) -> list[str]:
        """The classes of what a loop over a list of layers gives."""
        for node in walk_scope(function.node):
            layers = iterated(node, name) if isinstance(node, ast.For) else None
            if is_attribute(layers, "self"):
                made = self.calls.constructions(function.owner, layers.attr)
                constructor = self.calls.method(function.owner, "__init__")
                stores = stores_of(self.calls, function.owner, layers.attr)
                if len(made) == len(stores) == 1 and constructor is not None:
                    return self._listed(self.calls.definitions[constructor], made[0], layers.attr)
        raise NotProven(f"cannot infer which layers `{name}` in `{function.qualname}` may be")

    def _listed(self, constructor: Definition, made: ast.Call, attribute: str) -> list[str]:
        """The classes of the elements of `nn.ModuleList(made)`, to which nothing is added later."""
        unknown = NotProven(f"cannot infer what `{short(made)}` contains")
        listed = made.args[0] if len(made.args) == 1 else None
        if torch_api.torch_module_class(self.site.resolve_global(made.func)) != "ModuleList" or listed is None:
            raise unknown
        elements: list[ast.expr] = []
        if isinstance(listed, (ast.ListComp, ast.GeneratorExp)):
            elements.append(listed.elt)
        elif isinstance(listed, (ast.List, ast.Tuple)):
            elements += listed.elts
        elif isinstance(listed, ast.Name):
            for node in walk_scope(constructor.node):
                called = node.func if isinstance(node, ast.Call) else None
                if is_attribute(called, listed.id, "append"):
                    elements += node.args  # type: ignore[attr-defined]
        if any(is_changed(part, attribute) for part in walk(tree_of(self.site.source.text))):
            raise unknown
        elements = [
            part for each in elements for part in ((each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,))
        ]
        names = names_called(elements)
        if not names or len(names) != len(elements):
            raise unknown
        return sorted(set(names))


def _is_local(function: Definition, name: str) -> bool:
    return bool(bindings(function, name)) or name in parameter_names(function.node)


def _parameters_given(callee: Definition, call: ast.Call, name: str, count: int) -> list[str]:
    found = [parameter for parameter, given in callee.arguments(call).plain.items() if is_name(given, name)]
    if len(found) != count:
        raise NotProven(f"cannot infer which parameter of `{callee.qualname}` receives the mask")
    return found
