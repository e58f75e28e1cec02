"""What a function may hand to the objects that it makes, by the names that its statements lead from one to another."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator

from graphmend_codemod.core.source import SourceError, parse_text
from graphmend_codemod.project.summary.spelling import dotted

_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_BINDS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)


def handed(text: str, line: int, makers: Collection[str], *, kept: bool = True) -> frozenset[str] | None:
    """The names in all that the calls of `makers` in the function at `line`, or their results, may be given.

    What is given to a method is held by its object from then on, but for `self`, of which each attribute counts for
    itself; a function may put each of its arguments into the others. Where the results keep nothing (not `kept`), they
    are only given what they are called with. None where the function cannot be read.
    """
    function = _function(text, line)
    if function is None:
        return None
    sources = _sources(function)
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
    made = [each for each in calls if _made_by(each, makers)]
    results = [
        target for target, value, part in _bound(function) if not part and any(call in made for call in ast.walk(value))
    ]
    if not kept:
        named = {name for target in results for name in _names(target)}
        made += [each for each in calls if _made_by(each, named)]
    todo: list[ast.AST] = [part for call in made for part in (*call.args, *call.keywords)]
    todo += results if kept else []
    names: set[str] = set()
    while todo:
        new = _names(todo.pop()) - names
        names |= new
        for name in new:
            held = [key for key in sources if key == name or (name == "self" and key.startswith("self."))]
            todo += [source for key in held for source in sources.pop(key)]
    return frozenset(names)


def is_handed(spelled: str, given: Collection[str]) -> bool:
    """True for a reference of a summary where `given` has its name, or that of what it is an attribute of."""
    words = spelled.split(".")
    if words[0] in ("?", "super()"):
        return any(name.rpartition(".")[2] == words[-1] for name in given)
    return any(".".join(words[:count]) in given for count in range(1, len(words) + 1))


def _made_by(call: ast.Call, makers: Collection[str]) -> bool:
    """True for a call of a maker, and of what such a call returns: `retried(f)(x)`."""
    func = call.func
    while isinstance(func, ast.Call):
        func = func.func
    return dotted(func) in makers


def _function(text: str, line: int) -> ast.AST | None:
    try:
        tree = parse_text(text)
    except SourceError:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if line in (node.lineno, min([node.lineno, *(each.lineno for each in node.decorator_list)])):
            return node
    return None


def _bound(function: ast.AST) -> Iterator[tuple[ast.AST, ast.AST, bool]]:
    """What is bound, to what, and whether to an element of it."""
    for node in ast.walk(function):
        if isinstance(node, _LOOPS):
            yield node.target, node.iter, True
        elif isinstance(node, _BINDS) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((each, node.value, False) for each in targets)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr, False


def _sources(function: ast.AST) -> dict[str, list[ast.AST]]:
    """The expressions that a name or an attribute may get something from."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for target, value, _ in _bound(function):
        for name in _names(target):
            found[name].append(value)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            parts: list[ast.AST] = [*node.args, *node.keywords]
            owners = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            for name in {name for part in (*owners, *parts) for name in _names(part)} - {"self"}:
                found[name] += parts
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node is not function:
            found[node.name] += node.body
    return found


def _names(node: ast.AST) -> set[str]:
    """The names in a node, and its attributes with what they are attributes of; `self` where it stands alone."""
    parts = [*ast.walk(node)]
    attributes = [part for part in parts if isinstance(part, ast.Attribute)]
    owners = {id(part.value) for part in attributes}
    names = {part.id for part in parts if isinstance(part, ast.Name) and not (part.id == "self" and id(part) in owners)}
    for spelled in filter(None, map(dotted, attributes)):
        words = spelled.split(".")
        names |= {".".join(words[:count]) for count in range(2, len(words) + 1)}
    return names
