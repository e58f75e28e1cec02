"""Layers that a call runs, makes or copies, and that Dynamo does not trace there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.callgraph import ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.iterated import in_step
from graphmend_codemod.analysis.patterns import is_attribute, is_name, last_name
from graphmend_codemod.analysis.scope import defaults_of, dotted, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.value_flow import put_into
from graphmend_codemod.core.source import SourceError
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.project.summary.candidates import is_named_recurrent
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraceable_calls import TRANSFORMS as _TRANSFORMS
from graphmend_codemod.rules.proofs.untraceable_calls import is_random_transform
from graphmend_codemod.rules.proofs.untraced.frames import Source
from graphmend_codemod.rules.proofs.untraced.guesses import seems_tensor
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.value_sources import Guess

_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
LAYERS = _RECURRENT | {"CTCLoss"}
_LEVELS = 4


def recurrent(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """A call of a `nn.LSTM`, which is an attribute of the instance, or of one of its methods."""
    if not isinstance(node.func, ast.Attribute):
        return None
    for held in (node.func, node.func.value):
        attribute = _attribute_of(site, held)
        if attribute is not None and torch_api.torch_module_class(site.value(attribute).instance_of) in _RECURRENT:
            return _calls_recurrent(node)
    return None


def held_recurrent(site: Site, node: ast.Call) -> Untraced | None:
    """The same in a list or a dict of the instance, by a class that inherits, or as one of several classes."""
    outline = site.evaluator.scope.outline
    if "recurrent" not in outline.notes:
        outline.notes["recurrent"] = any(map(is_named_recurrent, outline.words))
    if not outline.notes["recurrent"]:
        return None
    return _calls_recurrent(node) if _is_recurrent(site, node.func) else None


def _calls_recurrent(node: ast.Call) -> Untraced:
    return Untraced(
        node,
        "calls a recurrent layer (`nn.LSTM`, `nn.GRU`, `nn.RNN`)",
        "Dynamo traces it only with `torch._dynamo.config.allow_rnn = True`; set that before you call `torch.compile`",
    )


def _is_recurrent(site: Site, function: ast.expr) -> bool:
    attribute = _attribute_of(site, function)
    if attribute is None or not is_named_recurrent(attribute.attr):
        return False
    made = site.value(attribute).instance_of
    if attribute is function and made is not None:
        return _inherits_recurrent(site, made)
    return may_be_recurrent(site, attribute.attr, held=True)


def may_be_recurrent(site: Site, attribute: str, *, held: bool = False) -> bool:
    """True for an attribute that the class makes as one of several things, a recurrent layer among them.

    With `held`, also for what holds some: `nn.ModuleList([nn.LSTM(4, 5)])`.
    """
    calls = [call for call, whole in _made_for(site, attribute) if whole or held]
    names = [site.evaluator.scope.index.resolve(site.summary.name, dotted(each.func) or "?") for each in calls]
    return (
        any(_inherits_recurrent(site, each) for each in names if each is not None)
        or any(isinstance(each.func, ast.Call) and _looks_up_recurrent(each.func, attribute) for each in calls)
        or any(_chosen_recurrent(site, each.func) for each in calls)
    )


def _chosen_recurrent(site: Site, made: ast.expr) -> bool:
    """True for `self.rnn_cell(...)`, `cells[kind](...)` where something in the file makes that one of these classes."""
    while isinstance(made, ast.Subscript):
        made = made.value
    name = last_name(made)
    own = is_attribute(made, site.evaluator.scope.self_name)
    classes = [part for part in walk_in_layers(made) if isinstance(part, ast.Attribute)]
    chosen = _bound(site.source.text).get(name, ()) if own or isinstance(made, ast.Name) else ()
    for value in chosen:
        if isinstance(value, ast.Call) and _looks_up_recurrent(value, name):
            return True
        classes += [each for each in walk_in_layers(value) if isinstance(each, ast.Attribute)]
    resolved = (site.resolve_global(each) for each in classes)
    return any(torch_api.torch_module_class(each) in _RECURRENT for each in resolved if each is not None)


@lru_cache(maxsize=2)
def _bound(text: str) -> dict[str, list[ast.expr]]:
    """What a file assigns to each name, or to an attribute of that name, and what its parameters hold unasked."""
    found: dict[str, list[ast.expr]] = {}
    for part in walk(tree_of(text)):
        if isinstance(part, ast.Assign):
            for name in {last_name(target) for target in part.targets}:
                found.setdefault(name, []).append(part.value)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for given, default in defaults_of(part):
                found.setdefault(given.arg, []).append(default)
    return found


def holds_layer(site: Site, function: ast.Attribute, layer: str) -> bool:
    """True where the class of the instance gives the attribute that is called a layer of torch, among others."""
    names = (dotted(each.func) or "" for each, _ in _made_for(site, function.attr))
    return any(name.rpartition(".")[2] == layer for name in names)


def _made_for(site: Site, attribute: str) -> Iterator[tuple[ast.Call, bool]]:
    """The calls in what the class of the instance assigns to one of its attributes, if that may be several things.

    With whether the call is all of it, or one arm of a conditional expression.
    """
    home = site.class_name
    fact = site.evaluator.scope.attribute(attribute)
    if fact is not None and fact.kind not in _UNCLEAR:
        return
    try:
        calls = calls_in(site.source.text)
    except SourceError:
        return
    for value in (*calls.assigned(home, attribute), *_put_into(calls, home, attribute)):
        arms = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        for part in walk_in_layers(value):
            if isinstance(part, ast.Call):
                yield part, part in arms


def _put_into(calls: ModuleCalls, owner: str, attribute: str) -> Iterator[ast.expr]:
    """What methods of a class append to a list of the instance: `self.rnns.append(nn.LSTM(4, 5))`."""
    for each in put_into(calls, {owner}, attribute):
        if isinstance(each, ast.Call) and each.args and last_name(each.func) in _ADDS:
            yield each.args[-1]


_ADDS = frozenset({"append", "insert", "extend", "add_module"})
_UNCLEAR = frozenset({AttributeKind.OTHER, AttributeKind.CHANGED, AttributeKind.CALL})


def _looks_up_recurrent(made: ast.Call, attribute: str) -> bool:
    """True for `getattr(nn, rnn_type)(...)`, or in an attribute of such a name."""
    looked_up = dotted(made.func) == "getattr" and len(made.args) > 1
    return looked_up and is_named_recurrent(f"{attribute} {ast.unparse(made.args[1])}")


def _attribute_of(site: Site, function: ast.expr) -> ast.Attribute | None:
    """`self.rnn` for what is called: `self.rnn`, `self.rnns[i]`, and `rnn` of a loop over `self.rnns`."""
    own = site.evaluator.scope.self_name
    if isinstance(function, ast.Name):
        loops = [each for each in walk_scope(site.evaluator.scope.node) if isinstance(each, ast.For)]
        pairs = (pair for loop in loops for pair in in_step(loop.target, loop.iter, site.resolve))
        function = next((iterated for target, iterated in pairs if is_name(target, function.id)), function)
    while isinstance(function, ast.Subscript):
        function = function.value
    attribute = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    return function if attribute and function.value.id == own else None  # type: ignore[attr-defined,return-value]


def _inherits_recurrent(site: Site, qualified: str, depth: int = 0) -> bool:
    """True for a recurrent layer of torch, and for a class of the project that inherits from one."""
    if torch_api.torch_module_class(qualified) in _RECURRENT:
        return True
    facts = site.evaluator.scope.index.class_facts(qualified) if depth < _LEVELS else None
    return facts is not None and any(_inherits_recurrent(site, base, depth + 1) for base in facts.bases)


def copied(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`copy.deepcopy(self.layer)`, `copy.deepcopy(x)`."""
    if called != "copy.deepcopy" or len(node.args) != 1:
        return None
    given = node.args[0]
    own = isinstance(given, ast.Attribute) and _attribute_of(site, given) is not None
    made = site.value(given).instance_of if own else None
    facts = site.evaluator.scope.index.class_facts(made) if made is not None else None
    layer = torch_api.torch_module_class(made) is not None or (facts is not None and facts.is_module)
    if not layer and not seems_tensor(site, given):
        return None
    return Untraced(
        node,
        "copies a module or a tensor with `copy.deepcopy`",
        "Dynamo does not trace it; manually use `clone()` for a tensor, and copy a module before compiling",
    )


def constructed(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`Layer(config)` in a method that `forward` reaches."""
    if called is None or not has_parameters(site, called):
        return None
    return Untraced(
        node,
        "constructs a module with parameters inside `forward`",
        (
            "Dynamo cannot trace `nn.Parameter`; "
            "construct the module in `__init__`, or in a method that runs before compiling"
        ),
    )


def has_parameters(site: Site, qualified: str, depth: int = 0) -> bool:
    """True for a class of modules that certainly have parameters of their own."""
    layer = torch_api.torch_module_class(qualified)
    if layer is not None:
        return layer in torch_api.LAYERS_WITH_PARAMETERS
    facts = site.evaluator.scope.index.class_facts(qualified)
    if facts is None or not facts.is_module or depth >= _LEVELS:
        return False
    kinds = facts.attributes.values()
    return any(
        each.kind is AttributeKind.PARAMETER
        or (each.kind is AttributeKind.CALL and each.callee and has_parameters(site, each.callee, depth + 1))
        for each in kinds
    )


def held_transform(site: Site, node: ast.Call) -> Untraced | None:
    """`self.augment(x)`, where that may be a `Sequential` with random transforms of torchvision."""
    if not _names_torchvision(site.source.text) or _attribute_of(site, node.func) is None:
        return None
    if not Guess(site).holds(node.func, _is_random):
        return None
    return Untraced(node, _TRANSFORMS.does, _TRANSFORMS.advice)


@lru_cache(maxsize=4)
def _names_torchvision(text: str) -> bool:
    return "torchvision" in text


def _is_random(guess: Guess, source: Source) -> bool | None:
    node = source.node
    if not isinstance(node, ast.Call):
        return None if isinstance(node, (ast.Name, ast.Attribute, ast.BoolOp, ast.IfExp)) else False
    parts = (each for each in walk_in_layers(node) if isinstance(each, ast.Call))
    if any(is_random_transform(guess.resolve(source, each.func) or "") for each in parts):
        return True
    return None


def switched_off(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """A call of a function of the project that `torch.compiler.disable` keeps out of the graph."""
    scope, function = site.evaluator.scope, node.func
    if called is None and isinstance(function, ast.Attribute) and scope.class_facts is not None:
        own = is_name(function.value, scope.self_name)
        called = scope.class_facts.methods.get(function.attr) if own else None
    facts = scope.index.function(called) if called is not None and not called.startswith("torch.") else None
    if facts is None or not any(each.partition("(")[0] in _SWITCHES for each in facts.decorators):
        return None
    advice = "the author asked for it with `disable`; manually make the function traceable and remove that"
    return Untraced(node, "calls a function that is kept out of the graph", advice)


_SWITCHES = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._dynamo.decorators.disable"})
