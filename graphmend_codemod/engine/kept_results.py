"""Edits in functions whose results `functools.cache` keeps: Dynamo traces such a function and asks no cache.

A break inside leaves the call to eager mode, where the cache answers. Without it, compiled code would compute the
result in each call: from other random numbers, and without what was written into the tensor that the cache holds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from graphmend_codemod.analysis.callgraph import Definition, ModuleCalls, calls_in
from graphmend_codemod.analysis.patterns import is_none
from graphmend_codemod.analysis.scope import walk, walk_scope
from graphmend_codemod.analysis.torch_api import torch_function
from graphmend_codemod.core.findings import Edit
from graphmend_codemod.rules.framework.site import Site

_DEEP = 4
_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
_CHANGED = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_PLAIN = frozenset({"bool", "int", "float", "str", "bytes", "tuple", "Tuple", "Optional", "None"})
_LIBRARIES = frozenset({"numpy", "scipy", "librosa", "pywt", "random"})


def why_not(edit: Edit, site: Site) -> str | None:
    """The reason in a function whose result is cached, and in what such a function calls."""
    if not _has_cached(site):
        return None
    calls = calls_in(site.source.text)
    function = calls.at(site.evaluator.scope.node.lineno)
    if function is None or _is_called_while_tracing(edit, site):
        return None
    families = ((each, _reached(calls, each)) for each in _cached(site, calls))
    keeper = next((each for each, family in families if function in family and _computes(site, family)), None)
    if keeper is None:
        return None
    reason = f"torch.compile asks no cache: without the break it would compute `{keeper.qualname}` in each call"
    return f"{reason}; manually keep its result on the module"


def _has_cached(site: Site) -> bool:
    """True where a file decorates functions and imports `functools`, which is all that most files are asked."""
    imported = (each.target.partition(":")[0] for each in site.summary.bindings if each.kind == "import")
    return "functools" in imported and any(each.decorators for each in site.summary.functions)


def _cached(site: Site, calls: ModuleCalls) -> Iterator[Definition]:
    """The functions of the file that keep what they return; one that returns nothing is called for its effects."""
    for each in calls.definitions.values():
        marks = [mark.func if isinstance(mark, ast.Call) else mark for mark in each.node.decorator_list]
        results = (part.value for part in walk_scope(each.node) if isinstance(part, ast.Return))
        keeps = any(result is not None and not is_none(result) for result in results)
        if keeps and any(site.resolve_global(mark) in _CACHES for mark in marks):
            yield each


def _computes(site: Site, family: Sequence[Definition]) -> bool:
    """True for functions that make tensors, arrays, random numbers or containers.

    What else there is, such as the name of a device, Dynamo computes itself and keeps in the graph.
    """
    parts = [part for each in family for part in walk_scope(each.node)]
    names = {site.resolve_global(part.func) or "" for part in parts if isinstance(part, ast.Call)}
    if any(torch_function(each) is not None or each.partition(".")[0] in _LIBRARIES for each in names):
        return True
    return any(
        isinstance(part, _CHANGED) or (not _says_plain(each) and isinstance(part, ast.BinOp) and _reads_attribute(part))
        for each in family
        for result in walk_scope(each.node)
        if isinstance(result, ast.Return) and result.value is not None
        for part in _made_of(result.value)
    )


def _says_plain(function: Definition) -> bool:
    """True for `-> str` and `-> tuple[int, int]`."""
    returns = function.node.returns
    words = [part for part in walk(returns) if isinstance(part, ast.Name)] if returns is not None else []
    return bool(words) and all(word.id in _PLAIN for word in words)


def _made_of(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a result, but for those that are only asked: `kind in ["GPU", "CUDA"]` is True or False."""
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return
    yield node
    for part in ast.iter_child_nodes(node):
        yield from _made_of(part)


def _reads_attribute(node: ast.BinOp) -> bool:
    """True for `layer.weight * 2`."""
    return any(isinstance(part, ast.Attribute) for side in (node.left, node.right) for part in walk(side))


def _reached(calls: ModuleCalls, function: Definition) -> list[Definition]:
    """The function, and those of its file that it calls, directly or not."""
    found, edge = [function], [function]
    for _ in range(_DEEP):
        called = [
            callee
            for each in edge
            for part in walk_scope(each.node)
            if isinstance(part, ast.Call) and (callee := calls.callee(each, part)) is not None
        ]
        edge = [each for each in called if each not in found]
        found += edge
    return found


def _is_called_while_tracing(edit: Edit, site: Site) -> bool:
    """True where a helper calls the function itself, which Dynamo then does not trace."""
    called = re.compile(rf"\b{re.escape(site.function)}\b")
    return any(called.search(each.source) for each in edit.helpers)
