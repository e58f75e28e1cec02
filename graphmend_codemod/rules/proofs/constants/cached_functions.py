"""Functions of numbers that leave torch: their results are constants of the compiled graph.

`functools.cache` says that a call with equal arguments gives the same result; of other functions that is proven. Dynamo
breaks the graph inside. The compile path asks for arguments that are constants of Python, calls the function while
tracing and keeps what it gives: what is cached as it is, and a copy of what each call makes anew.
"""

from __future__ import annotations

import ast
import re
from itertools import combinations

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.patterns import last_name, positional_names
from graphmend_codemod.analysis.scope import FunctionNode, defaults_of, parameters, walk
from graphmend_codemod.core.findings import Edit, Helper
from graphmend_codemod.rules.framework.edits import CONSTANT, path_before_body
from graphmend_codemod.rules.framework.reasons import NotProven, demand_torch
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.constants.libraries import MAKERS, NUMBERS, Kind
from graphmend_codemod.rules.proofs.constants.pure_values import PureValues
from graphmend_codemod.rules.proofs.outlining.effects.settled_globals import names_changed

_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
_COMMENT = "# torch.compile cannot trace this function: it calls it while it traces, and keeps the result."
_SOURCE = '''\
def _are_constants(*given) -> bool:
    """True for numbers, words, None, types, dtypes and devices, and tuples of them: known while tracing."""
    kinds = (int, float, bool, str, type, type(None), torch.dtype, torch.device)
    return all(_are_constants(*each) if type(each) is tuple else type(each) in kinds for each in given)'''
ARE_CONSTANTS = Helper("_are_constants", _SOURCE, shared=True)
"""Asks for arguments that Dynamo knows while it traces."""


def is_cached(site: Site) -> bool:
    """True in a function under `functools.cache` or `lru_cache`."""
    decorators = site.evaluator.scope.node.decorator_list
    return any(site.resolve_global(_called(each)) in _CACHES for each in decorators)


def is_hidden(site: Site) -> bool:
    """True in a cached function of an `autograd.Function`, which Dynamo does not look into."""
    owner = site.function.rpartition(".")[0]
    facts = site.evaluator.scope.index.class_facts(f"{site.summary.name}.{owner}") if owner else None
    return facts is not None and any(each.startswith("torch.autograd.") for each in facts.bases) and is_cached(site)


_COPIES = {
    Kind.ARRAY: "{}[0].clone().numpy()",
    Kind.TENSOR: "{}[0].clone()",
    Kind.TENSORS: "tuple(each.clone() for each in {})",
    Kind.NUMBER: "{}",
}
USABLE = frozenset(_COPIES)
"""What a function may return that is no cached one."""


def computed(site: Site, statement: ast.stmt) -> tuple[Kind, int] | None:
    """What the function of numbers around a statement that breaks the graph returns, and how many of them it has.

    None where it is no function of numbers, or does more than compute.
    """
    function = site.evaluator.scope.node

    def look() -> tuple[Kind, frozenset[int]] | None:
        values = PureValues(site)
        try:
            kind = values.result(function)
        except NotProven:
            return None
        sure = kind in USABLE and _takes_numbers(site, function) and not _may_share(site, function)
        return (kind, frozenset(values.lines)) if sure else None

    if "." in site.function or function.decorator_list:
        return None
    found = site.remembered("function of numbers", function, look, anywhere=True)
    return (found[0], len(found[1])) if found is not None and statement.lineno in found[1] else None


def _takes_numbers(site: Site, function: FunctionNode) -> bool:
    """True where something says of each parameter that it may be a number."""
    calls = [part for part in walk(function) if isinstance(part, ast.Call)]
    calls = [part for part in calls if (site.resolve_global(part.func) or "") in _OF_NUMBERS]
    sure = {part.id for call in calls for part in ast.walk(call) if isinstance(part, ast.Name)}
    sure |= {each.arg for each, _ in defaults_of(function)}
    said = [each for each in parameters(function) if each.arg not in sure]
    return all(each.annotation is not None and _NUMBER.search(ast.unparse(each.annotation)) for each in said)


def _may_share(site: Site, function: FunctionNode) -> bool:
    """True where two tensors that a function returns may share memory, and their copies would not."""
    memory = _Memory(site, function)
    returned = [part.value for part in walk(function) if isinstance(part, ast.Return)]
    every = [[memory.of(each) for each in value.elts] for value in returned if isinstance(value, ast.Tuple)]
    return any(one & other for each in every for one, other in combinations(each, 2))


class _Memory:
    """The names whose memory an expression of a function of numbers may have."""

    def __init__(self, site: Site, function: FunctionNode) -> None:
        self._site = site
        self._given: dict[str, list[ast.expr]] = {}
        for part in walk(function):
            if isinstance(part, ast.Assign) and not self._is_number(part.value):
                for target in part.targets:
                    self._bind(target, part.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._given.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple):
            written = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            # What a function gives several of are different things.
            values = value.elts if written and isinstance(value, ast.Tuple) else target.elts
            for each, given in zip(target.elts, values, strict=True):
                self._bind(each, given)

    def of(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> set[str]:
        """Names of the function, `node`'s own among them; empty for memory that nothing else has."""
        if isinstance(node, ast.Name):
            given = self._given.get(node.id, []) if node.id not in seen else []
            own = {node.id} if node.id in self._given else set()
            return own.union(*(self.of(each, seen | {node.id}) for each in given))
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) or self._copies(node):
            return set()
        parts = (each for each in ast.iter_child_nodes(node) if isinstance(each, (ast.expr, ast.keyword)))
        return set().union(*(self.of(each, seen) for each in parts))

    def _is_number(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self._site.resolve_global(node.func) in NUMBERS

    def _copies(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        qualified = self._site.resolve_global(node.func) or ""
        makes = qualified.startswith("torch.") and qualified not in ("torch.as_tensor", "torch.from_numpy")
        plain = isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
        return makes or (plain and last_name(node.func) in ("copy", "clone"))


_OF_NUMBERS = MAKERS | {"builtins.range"}
_NUMBER = re.compile(r"\b(?:int|float|str|bool|dtype|device)\b")


def edit(site: Site, kind: Kind | None = None) -> Edit:
    """The compile path in front of the body of the function around the site. NotProven where that would show.

    `kind` is what a function returns that makes it anew each time.
    """
    function = site.evaluator.scope.node
    _check(site, function)
    if kind is None:
        _check_kept(site, function.name)
    given, values = _arguments(function)
    name = site.free_name(f"_{function.name.strip('_')}_as_constant")
    conditions = ["torch.compiler.is_dynamo_compiling()", f"_are_constants({', '.join(values)})"]
    result = ("{}[0]" if kind is None else _COPIES[kind]).format(f"{name}({', '.join(given)})")
    called = f"torch.compiler.disable({site.function})(*given, **named)"
    made = [
        f"@{CONSTANT.name}",
        f"def {name}(*given, **named):",
        f'    """`{site.function}`, whose result torch.compile keeps as a constant."""',
        "    # Where an argument is no constant after all the graph breaks, and the function itself has to run.",
        f"    return {_RESULTS.get(kind, '{}').format(called)}",
    ]
    helpers = (
        ARE_CONSTANTS,
        CONSTANT,
        Helper(name, "\n".join(made), since="compiler.assume_constant_result"),
    )
    return Edit((path_before_body(site, _COMMENT, conditions, result),), ("torch",), helpers)


# A tuple, also of a single tensor: computed_arrays.py says why.
_RESULTS = {
    Kind.ARRAY: '(torch.as_tensor({}.copy("K"), device="cpu"),)',
    Kind.TENSOR: "({},)",
    None: "({},)",
}


def _check(site: Site, function: FunctionNode) -> None:
    demand_torch(site)
    owner, _, name = site.function.rpartition(".")
    top = owner or name
    if name != function.name or "." in owner or isinstance(function, ast.AsyncFunctionDef):
        raise NotProven("the code is in a nested function; move it into a function of its own")
    if not site.summary.binds_only(top, ("class", "function")):
        raise NotProven(f"`{top}` may be something else when the function runs")
    known = {"builtins.staticmethod"} if owner else set()
    decorators = [site.resolve_global(_called(each)) for each in function.decorator_list]
    if any(each not in _CACHES | known for each in decorators) or (owner and known.isdisjoint(decorators)):
        raise NotProven("the function is decorated")
    if is_hidden(site):
        raise NotProven("Dynamo calls cached functions of an `autograd.Function` as a whole; move it out of the class")
    if any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in walk(function)):
        raise NotProven("the function is a generator")
    if any(isinstance(part, ast.keyword) and part.arg == "requires_grad" for part in walk(function)):
        raise NotProven("it makes a tensor that requires gradients")


def _check_kept(site: Site, name: str) -> None:
    """NotProven where this file writes into what the cached function gives, which eager mode has in the cache then."""
    text = site.source.text
    for node in ast.walk(tree_of(text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and last_name(node.value.func) == name:
            parts = [part for target in node.targets for part in ast.walk(target)]
            found = {part.id for part in parts if isinstance(part, ast.Name)} & names_changed(text)
            if found:
                raise NotProven(f"what it gives is cached, and `{min(found)}` changes in place")


def _arguments(function: FunctionNode) -> tuple[list[str], list[str]]:
    """What the call hands on, and what has to be constant."""
    args = function.args
    plain = positional_names(function)
    named = [each.arg for each in args.kwonlyargs]
    given, values = [*plain], [*plain]
    if args.vararg is not None:
        given.append(f"*{args.vararg.arg}")
        values.append(f"*{args.vararg.arg}")
    given += [f"{each}={each}" for each in named]
    values += named
    if args.kwarg is not None:
        given.append(f"**{args.kwarg.arg}")
        values.append(f"*{args.kwarg.arg}.values()")
    return given, values


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node
