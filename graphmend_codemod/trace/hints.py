"""What a recorded run knew of local variables, as hints for the rules.

A name that held a tensor at a break is taken for one where the source does not say what it is. It is a hint like an
annotation: it chooses the compile path that is worth writing, which asks in its header whether it is so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.core.source import SourceError, SourceFile
from graphmend_codemod.trace.document import OWN, Site, Trace

_TENSORS = frozenset({"torch.Tensor", "torch.nn.parameter.Parameter"})


def with_hints(trace: Trace, settings: Settings) -> Settings:
    """The settings with the locals that held tensors at the breaks of a trace."""
    functions: dict[str, list[tuple[int, int, str]]] = {}
    seen: set[tuple[str, str, str]] = set()
    for site in trace.sites:
        if site.place.where != OWN or not site.facts:
            continue
        path = site.place.path
        if path not in functions:
            functions[path] = list(_functions(str(settings.root), path))
        function = _around(site, functions[path])
        if function is not None:
            seen.update((path, function, fact.name) for fact in site.facts if fact.type in _TENSORS)
    return settings._replace(seen_tensors=frozenset(seen)) if seen else settings


def _functions(root: str, path: str) -> Iterator[tuple[int, int, str]]:
    """First and last line and qualified name of each function; outer ones first."""
    try:
        tree = ast.parse(SourceFile.below(root, path).text)
    except (SourceError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    yield child.lineno, child.end_lineno or child.lineno, inner[:-1]
            waiting.append((child, inner))


def _around(site: Site, functions: list[tuple[int, int, str]]) -> str | None:
    """The innermost function with the site's name around its line."""
    line, name = site.place.line, site.place.function
    found = [
        (first, qualname)
        for first, last, qualname in functions
        if first <= line <= last and qualname.rpartition(".")[2] == name
    ]
    return max(found)[1] if found else None
