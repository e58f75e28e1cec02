"""What a recorded run knew of local variables and attributes, as hints for the rules.

Where the source does not say what a name is, it is taken for what it was at a break, as if its author had annotated it:
a tensor, one of integers, or an object of a class. It is a hint like an annotation: it chooses the compile path that is
worth writing, which asks in its header whether it is so. A function that Dynamo traced is one that rules look at,
whether or not the source shows who compiles it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.torch_api import TYPED_TENSORS
from graphmend_codemod.core.settings import SeenCalls, Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.trace.document import OWN, Fact, Known, SourceLine, Trace

_TENSORS = frozenset({"torch.Tensor", "torch.nn.parameter.Parameter"})
_OF_DTYPE = {dtype.removeprefix("torch."): annotation for annotation, dtype in TYPED_TENSORS.items()}
_LAYERS = "torch.nn.modules."


def with_hints(trace: Trace, settings: Settings) -> Settings:
    """The settings with the functions that Dynamo traced, and what their names were at the breaks of a trace."""
    functions = _Functions(str(settings.root))
    types: dict[tuple[str, str, str], set[str]] = {}
    reached: set[tuple[str, str]] = set()
    for place in (*(each.place for each in trace.compilations), *(site.place for site in trace.sites)):
        function = functions.around(place)
        if function is not None:
            reached.add((place.path, function))
    for known in (*trace.known, *(Known(site.place, site.facts) for site in trace.sites)):
        function = functions.around(known.place) if known.facts else None
        if function is None:
            continue
        for fact in known.facts:
            annotation = _annotation(fact)
            if annotation is not None:
                types.setdefault((known.place.path, function, fact.name), set()).add(annotation)
    seen = tuple((*key, annotation) for key, every in sorted(types.items()) if (annotation := _all_of(every)))
    calls = tuple(
        SeenCalls(
            each.place.path,
            each.place.function,
            each.broken,
            tuple((one.key, one.first, one.last) for one in each.statements),
            each.facts,
            each.calls,
            each.called,
        )
        for each in trace.watched
    )
    return settings._replace(seen_types=seen, seen_functions=frozenset(reached), seen_calls=calls)


def _annotation(fact: Fact) -> str | None:
    """What the author would have written for a name that was this; None for what no rule asks about."""
    kinds = set(fact.type.split(" or "))
    optional = " | None" if "NoneType" in kinds else ""
    kinds.discard("NoneType")
    if kinds and kinds <= _TENSORS:
        return _OF_DTYPE.get(fact.dtype, "torch.Tensor") + optional
    if len(kinds) == 1 and not optional and fact.type.startswith(_LAYERS):
        return f"torch.nn.{fact.type.rpartition('.')[2]}"
    return None


def _all_of(every: set[str]) -> str | None:
    """One annotation for what a name was at several places; None where it was of several classes.

    A tensor that became a number further down is one all the same, where nothing else is known of it.
    """
    tensors = {each for each in every if "Tensor" in each}
    if not tensors:
        return every.pop() if len(every) == 1 else None
    plain = {each.partition(" ")[0] for each in tensors}
    optional = any(each.endswith("None") for each in tensors)
    return (plain.pop() if len(plain) == 1 else "torch.Tensor") + (" | None" if optional else "")


class _Functions:
    """The functions of the project's files, as they are now."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, list[tuple[int, int, str]]] = {}

    def around(self, place: SourceLine) -> str | None:
        """The qualified name of the innermost function around a line of the project that has the place's name."""
        if place.where != OWN:
            return None
        if place.path not in self._known:
            self._known[place.path] = list(_functions(self._root, place.path))
        found = [
            (first, qualname)
            for first, last, qualname in self._known[place.path]
            if first <= place.line <= last and qualname.rpartition(".")[2] == place.function
        ]
        return max(found)[1] if found else None


def _functions(root: str, path: str) -> Iterator[tuple[int, int, str]]:
    """First and last line, decorators included, and qualified name of each function."""
    try:
        tree = ast.parse(SourceFile.below(root, path).text)
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                    yield first, child.end_lineno or child.lineno, inner[:-1]
            waiting.append((child, inner))
