"""Calls that write into an attribute of a module after its constructor: `init.zeros_(module.scale)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from graphmend_codemod.analysis.patterns import is_name, is_within, last_name, stores_name
from graphmend_codemod.analysis.scope import walk


@lru_cache(maxsize=2)
def initialised(tree: ast.Module) -> Mapping[str, list[tuple[ast.Call, ast.If | None]]]:
    """Calls such as `init.zeros_(module.scale)` by attribute, with the innermost `if isinstance(module, Class):`."""
    found: dict[str, list[tuple[ast.Call, ast.If | None]]] = {}
    asked = [part for part in walk(tree) if isinstance(part, ast.If) and _asks_class(part.test)]
    for call in (part for part in walk(tree) if isinstance(part, ast.Call) and part.args):
        given, name = call.args[0], last_name(call.func)
        if not isinstance(given, ast.Attribute) or name is None or name[-1] != "_" or name[-2:] == "__":
            continue
        around = [each for each in asked if is_within(call, ast.Module(each.body, []))]
        branch = max(around, key=lambda each: each.lineno, default=None)
        about = branch.test.args[0] if branch is not None else None  # type: ignore[attr-defined]
        known = about is not None and isinstance(given.value, ast.Name) and is_name(about, given.value.id)
        parts = (part for each in (branch.body if known and branch is not None else ()) for part in walk(each))
        known = known and not any(stores_name(part, given.value.id) for part in parts)  # type: ignore[attr-defined]
        found.setdefault(given.attr, []).append((call, branch if known else None))
    return found


def _asks_class(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and is_name(test.func, "isinstance") and len(test.args) == 2
