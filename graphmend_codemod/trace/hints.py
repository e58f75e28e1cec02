"""What a recorded run knew of local variables, as hints for the rules.

A name that held a tensor at a break is taken for one where the source does not say what it is. It is a hint like an
annotation: it chooses the compile path that is worth writing, which asks in its header whether it is so. A function
that Dynamo traced is one that rules look at, whether or not the source shows who compiles it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.trace.document import OWN, Place, Trace

_TENSORS = frozenset({"torch.Tensor", "torch.nn.parameter.Parameter"})


def with_hints(trace: Trace, settings: Settings) -> Settings:
    """The settings with the functions that Dynamo traced, and the locals that held tensors at the breaks of a trace."""
    functions = _Functions(str(settings.root))
    tensors: set[tuple[str, str, str]] = set()
    reached: set[tuple[str, str]] = set()
    for place in (*(each.place for each in trace.compilations), *(site.place for site in trace.sites)):
        function = functions.around(place)
        if function is not None:
            reached.add((place.path, function))
    for site in trace.sites:
        function = functions.around(site.place) if site.facts else None
        if function is not None:
            tensors.update((site.place.path, function, fact.name) for fact in site.facts if fact.type in _TENSORS)
    return settings._replace(seen_tensors=frozenset(tensors), seen_functions=frozenset(reached))


class _Functions:
    """The functions of the project's files, as they are now."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, list[tuple[int, int, str]]] = {}

    def around(self, place: Place) -> str | None:
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
