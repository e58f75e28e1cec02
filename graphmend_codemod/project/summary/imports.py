"""The names that import statements bind, and what each stands for."""

from __future__ import annotations

import ast


def imported(node: ast.Import) -> list[tuple[str, str]]:
    """(name, module) for every name that `import` binds; `import a.b` binds `a`."""
    pairs = []
    for alias in node.names:
        root = alias.name.partition(".")[0]
        pairs.append((alias.asname, alias.name) if alias.asname else (root, root))
    return pairs


def imported_from(node: ast.ImportFrom) -> list[tuple[str, str]]:
    """(name, `module:attribute`) for every name that `from M import` binds; (`*`, M) for a star import."""
    module = "." * node.level + (node.module or "")
    return [("*", module) if a.name == "*" else (a.asname or a.name, f"{module}:{a.name}") for a in node.names]


def import_root(target: str) -> str:
    """The top-level package of an import target, empty for a relative one."""
    return target.partition(":")[0].partition(".")[0]
