"""tensor-as-integer (GM402): elements of a tensor that was built from a Python list are used as sizes.

`for height, width in shapes:` over a tensor gives tensors; as a size, a count or the bound of a slice each of them is
read back to Python, which breaks the graph and waits for the device. Under `torch.compile` the loop runs over the list
that the tensor was built from, so that all sizes are known while tracing. Eager mode iterates over the tensor, as
before. The same list takes the place of `shapes.tolist()` where that says how to split a tensor.

The list is found across the calls of a module: where every call gives a function both the tensor and the list, and
nothing changes either. A function that gets the tensor alone and does nothing but iterate over it is given the list by
its callers, unless a subclass replaces it. Numbers that may be needed as tensors (`height.float()`) are left alone, and
so is everything where another file of the project uses the class that is given both: it may give two that differ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from graphmend_codemod.analysis import speculation
from graphmend_codemod.analysis.callgraph import Definition, Key, ModuleCalls, calls_in, tree_of
from graphmend_codemod.analysis.patterns import all_given, is_name, stores_name
from graphmend_codemod.analysis.scope import children, dotted, parameter_names, walk, walk_in_layers, walk_scope
from graphmend_codemod.analysis.speculation import short
from graphmend_codemod.core.findings import Edit, Original, Replacement
from graphmend_codemod.rules.framework.edits import beside
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.rule import ASKS_CLASSES, Contract, Cost, Diagnostic, Rule
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.calls.certain_calls import CertainCalls, Link, own_definition
from graphmend_codemod.rules.proofs.calls.unique_callee import sure_calls
from graphmend_codemod.rules.proofs.numbers.list_changes import ListChanges
from graphmend_codemod.rules.proofs.numbers.number_loops import iterated
from graphmend_codemod.rules.proofs.numbers.number_uses import NumberUses

rule = Rule(
    __name__,
    __doc__,
    title="take sizes from the list that a tensor was built from",
    contract=Contract(
        cost=Cost.NONE,
        cost_note="sizes are constants: another list of sizes may recompile",
        compiled_state=ASKS_CLASSES,
    ),
)


def _built(site: Site) -> dict[str, str]:
    """Tensors of the function with the list that each was built from."""
    if site.flow.origins is None:
        return {}
    return {name: value.built_from for name, value in site.place.env.items() if value.built_from is not None}


def _known(site: Site, built: Mapping[str, str]) -> dict[str, str]:
    """Those for which the module as a whole tells that the list has the same numbers here."""
    origins, function = site.flow.origins, site.evaluator.scope.node
    if origins is None:
        return {}
    own = dict(site.flow.lists) | dict(origins.builders.get((site.function, function.lineno), {}))
    return {name: source for name, source in built.items() if own.get(name) == source}


@rule.on(ast.For, candidate="list")
def loop_over_tensor(site: Site, node: ast.For) -> Diagnostic | None:
    """`for height, width in shapes`."""
    built = _built(site)
    head = walk_in_layers(node.iter) if built else ()
    name = next((part for part in head if isinstance(part, ast.Name) and part.id in built), None)
    uses = _elements(site, node, name.id) if name is not None else None
    if name is None or uses is None or not uses.slices:
        return None
    message = (
        "iterates over a tensor built from a Python list and uses its elements as sizes: "
        f"`{speculation.short(node.iter)}`"
    )
    return _verdict(site, message, [name], built, _why_not(uses), [])


def _elements(site: Site, node: ast.For, name: str) -> NumberUses | None:
    """What a loop does with the elements of what a name holds; None where it does not go through them."""
    sure = sure_calls(site)
    function = sure.calls.at(site.evaluator.scope.node.lineno)
    inside = walk_scope(function.node) if function is not None else ()
    loop = next((each for each in inside if isinstance(each, ast.For) and site.span(each) == site.span(node)), None)
    if function is None or loop is None:
        return None
    target = iterated(loop.target, loop.iter, name, lambda call: site.resolve(call.func))
    return NumberUses(sure, site.resolve_global).elements(function, target) if target is not None else None


@rule.on(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, candidate="list")
def call_with_tensor(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`f(shapes)` where `f` iterates over it."""
    if not (built := _built(site)) or (origins := site.flow.origins) is None:
        return None
    function = site.evaluator.scope.node
    caller = Definition(site.function, function, site.function.rpartition(".")[0])
    given: list[ast.Name] = []
    links: list[Link] = []
    reason = None
    for call in walk_scope(node):
        callee = origins.calls.callee(caller, call) if isinstance(call, ast.Call) else None
        if callee is None or not isinstance(call, ast.Call):
            continue
        taken = origins.lists.get((callee.qualname, callee.node.lineno), {})
        for parameter, argument in callee.arguments(call).items():
            if isinstance(argument, ast.Name) and argument.id in built and parameter not in taken:
                uses = NumberUses(sure_calls(site), site.resolve_global, swapped=True).several(callee, parameter)
                if uses.slices:
                    given.append(argument)
                    links.append(Link(caller, call, callee))
                    reason = reason or _why_not(uses)
    if not given:
        return None
    message = f"passes a tensor built from a Python list to a function that uses its elements as sizes: `{given[0].id}`"
    return _verdict(site, message, given, built, reason, links)


@rule.on(*(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.For), words=("tolist",), here=True)
def split_by_tensor(site: Site, node: ast.stmt) -> Diagnostic | None:
    """`x.split(lengths.tolist())`."""
    built = _built(site)
    roots = walk_in_layers(node.iter) if isinstance(node, ast.For) else walk_scope(node)
    calls = [part for part in roots if isinstance(part, ast.Call)] if built else []
    sizes = [given for call in calls if site.operation(call)[0] in _SPLITS for given in all_given(call)]
    for read in (each for each in sizes if isinstance(each, ast.Call) and not all_given(each)):
        name = read.func.value if isinstance(read.func, ast.Attribute) and read.func.attr == "tolist" else None
        if isinstance(name, ast.Name) and name.id in built:
            message = f"splits by sizes read from a tensor (device sync): `{speculation.short(read)}`"
            return _verdict(site, message, [name], built, None, [], read)
    return None


_SPLITS = frozenset({"split", "split_with_sizes", "tensor_split"})


def _why_not(uses: NumberUses) -> str | None:
    """Why the elements may be needed as tensors, or are handed to functions that nobody asks about."""
    if uses.reason is None and uses.sure.links:
        return f"`{speculation.short(uses.sure.links[0].call)}` gets them as well; use them as sizes here"
    return uses.reason


def _verdict(
    site: Site,
    message: str,
    names: list[ast.Name],
    built: Mapping[str, str],
    otherwise: str | None,
    links: list[Link],
    read: ast.Call | None = None,
) -> Diagnostic:
    """The list in place of each name, or of `read`, a call that turns the only one into a list."""
    known = _known(site, built)
    for name in names:
        if name.id not in known:
            return Diagnostic(
                message, declined=f"`{built[name.id]}` may have changed since `{name.id}` was built from it"
            )
    if otherwise is not None:
        return Diagnostic(message, declined=otherwise)
    try:
        conditions = " and ".join([site.compiling, *_asked(site, {name.id: known[name.id] for name in names}, links)])
    except NotProven as unsure:
        return Diagnostic(message, declined=str(unsure))
    if read is not None:
        parts = (f"{known[names[0].id]} if {conditions} else ", site.original(read))
        return Diagnostic(message, edit=beside(site, site.span(read), parts))
    chosen = {id(name): f"{known[name.id]} if {conditions} else {name.id}" for name in names}
    return Diagnostic(message, edit=Edit(tuple(_replacements(site, names, chosen)), imports=site.imports))


def _asked(site: Site, lists: Mapping[str, str], links: list[Link]) -> list[str]:
    """What the compile path asks for the calls to run what was read; NotProven where a list may hold other numbers."""
    origins = site.flow.origins
    if origins is None:
        return []
    calls, scope = calls_in(site.source.text), site.evaluator.scope
    own = own_definition(site)
    for key, pairs in origins.builders.items():
        for source in pairs.values():
            if is_parameter(calls.definitions[key], source):
                raise NotProven(f"only an annotation says that `{source}` contains integers")
    certain = CertainCalls(site, calls)
    KnownCallers(site, calls, origins.builders).demand_known_callers(own)
    changes = ListChanges(calls, lambda name: scope.index.resolve(site.summary.name, name))
    for tensor, source in lists.items():
        changed = changes.before(own, tensor, source, site.place.statement.lineno - 1)
        if changed is not None:
            raise NotProven(f"`{' '.join(changed.split())}` may change `{source}` or `{tensor}`")
    for link in links:
        certain.follow(certain.start(), link)
    return certain.conditions()


def _replacements(site: Site, names: list[ast.Name], chosen: Mapping[int, str]) -> Iterator[Replacement]:
    """Each name replaced; the arguments of a call on lines of their own where one line would be too long."""
    calls = [node for node in walk_scope(site.node) if isinstance(node, ast.Call)]
    spread: set[int] = set()
    for name in names:
        call = next((each for each in calls if name in each.args or name in [w.value for w in each.keywords]), None)
        if id(name) in spread:
            continue
        if call is None or not _too_long(site, name, chosen[id(name)]):
            yield Replacement(site.span(name), (chosen[id(name)],))
            continue
        spread |= {id(part) for part in walk_in_layers(call)}
        yield _one_a_line(site, call, chosen)


def _too_long(site: Site, name: ast.Name, text: str) -> bool:
    line = site.source.line(name.lineno)
    return len(line) - len(name.id) + len(text) > site.line_limit


def _one_a_line(site: Site, call: ast.Call, chosen: Mapping[int, str]) -> Replacement:
    """The arguments of a call, one a line."""
    arguments: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=site.span)
    first, last = site.span(arguments[0]), site.span(arguments[-1])
    span = first.through(last)
    own_line = first.start_line != (call.func.end_lineno or 0)
    parts: list[str | Original] = []
    for argument in arguments:
        value = argument.value if isinstance(argument, ast.keyword) else argument
        parts.append("" if own_line and not parts else "\n" if own_line else "\n    ")
        if id(value) in chosen:
            parts.append(f"{argument.arg}=" if isinstance(argument, ast.keyword) else "")
            parts.append(chosen[id(value)])
        else:
            parts.append(site.original(argument))
        parts.append(",")
    end = site.span(call)
    closing = end._replace(start_line=last.end_line, start_column=last.end_column)
    if "," in site.source.segment(closing):
        parts.pop()
    if not own_line:
        parts.append("\n")
    return Replacement(span, tuple(parts))


# Who else may call a function with a tensor and a list that have nothing to do with each other


class KnownCallers:
    """The calls of one module that pass a tensor together with the list it was built from."""

    def __init__(self, site: Site, calls: ModuleCalls, builders: Mapping[Key, Mapping[str, str]]) -> None:
        self._site, self._calls, self._builders = site, calls, builders

    def demand_known_callers(self, function: Definition) -> None:
        """NotProven where a function may be called with another tensor or list than in the calls that are known."""
        todo, seen = [function], set[Key]()
        while todo:
            each = todo.pop()
            key = (each.qualname, each.node.lineno)
            if key in seen or key in self._builders:
                continue
            seen.add(key)
            callers = self._calls.callers(each)
            self._demand_no_other(each, {id(call.func) for _, call in callers})
            todo += [caller for caller, _ in callers]

    def _demand_no_other(self, function: Definition, known: set[int]) -> None:
        name = function.owner or function.qualname
        users = self._site.evaluator.scope.index.users(f"{self._site.summary.name}.{name}")
        if users:
            raise NotProven(f"`{name}` is used in {users[0]} as well, which may pass another list with the tensor")
        tree = tree_of(self._site.source.text)
        for parent in walk(tree):
            for part in children(parent):
                if id(part) not in known and self._leads_to(function, part, parent):
                    raise NotProven(f"`{short(parent)}` may pass `{function.qualname}` another list with the tensor")

    def _leads_to(self, function: Definition, part: ast.AST, parent: ast.AST) -> bool:
        """True where a node may stand for the function, or for an instance that is called."""
        if not function.owner:
            return is_name(part, function.qualname)
        if not isinstance(part, ast.Attribute) or not isinstance(part.ctx, ast.Load):
            return False
        if function.node.name != "forward":
            return part.attr == function.node.name
        if part.attr in {"forward", "__call__"}:
            held = part.value.attr if isinstance(part.value, ast.Attribute) else ""
            return held in self._holders(function.owner) or isinstance(part.value, ast.Call)
        # An instance goes elsewhere: into a name, a call, a container.
        inside = isinstance(parent, (ast.Attribute, ast.For, ast.comprehension, ast.Subscript, ast.Compare, ast.Return))
        counted = isinstance(parent, ast.Call) and dotted(parent.func) in {"enumerate", "len"}
        return part.attr in self._holders(function.owner) and not inside and not counted

    def _holders(self, owner: str) -> set[str]:
        """The attributes that the module gives instances of a class, or of a subclass, alone or in a list."""
        return self._calls.remembered("holders", owner, lambda: set(self._find_holders(owner)))

    def _find_holders(self, owner: str) -> Iterator[str]:
        for node in walk(tree_of(self._site.source.text)):
            value = node.value if isinstance(node, ast.Assign) else None
            parts = walk(value) if value is not None else ()
            made = {each.func.id for each in parts if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}
            if any(each == owner or self._calls.is_heir(each, owner) for each in made) and isinstance(node, ast.Assign):
                yield from (target.attr for target in node.targets if isinstance(target, ast.Attribute))


def is_parameter(function: Definition, name: str) -> bool:
    """True for a list that a function is given: only an annotation says what it holds."""
    bound = any(stores_name(part, name) for part in walk_scope(function.node))
    return not bound and name in parameter_names(function.node)
