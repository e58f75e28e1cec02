"""What the top level of a module binds its names to: imports, constants, dicts, functions, classes."""

from __future__ import annotations

import ast

from graphmend_codemod.analysis.patterns import name_imported, stored_names
from graphmend_codemod.analysis.scope import SCOPES, dotted, walk_scope


class TopLevel:
    """The names that the statements of a module bind."""

    def __init__(self, tree: ast.Module) -> None:
        self._defined: list[str] = []
        self._imported: dict[str, str] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._others: list[ast.stmt] = []
        self._elsewhere: set[str] | None = None
        self.classes: dict[str, ast.ClassDef] = {}
        for node in tree.body:
            self._add(node)

    def _add(self, node: ast.stmt) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._defined.append(node.name)
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
            methods = (each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
            self._defined += [f"{node.name}.{each.name}" for each in methods]
        elif isinstance(node, ast.Import):
            self._imported |= {
                name_imported(each): each.name if each.asname else name_imported(each) for each in node.names
            }
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            self._imported |= {each.asname or each.name: f"{home}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._values.setdefault(target.id, []).append(node.value)
        else:
            self._others.append(node)

    def qualified(self, node: ast.expr) -> str | None:
        """The qualified name of what is spelled, where the module imports it."""
        root, dot, rest = (dotted(node) or "").partition(".")
        return f"{self._imported[root]}{dot}{rest}" if root in self._imported else None

    def literal(self, name: str) -> ast.Constant | None:
        """The constant that the module gives a name, which it binds once."""
        only = self._only_value(name)
        return only if isinstance(only, ast.Constant) else None

    def table(self, name: str) -> ast.Dict | None:
        """The same for a dict; elements may be added to it."""
        only = self._only_value(name)
        return only if isinstance(only, ast.Dict) else None

    def _only_value(self, name: str) -> ast.expr | None:
        values = self._values.get(name, [])
        return values[0] if len(values) == 1 and name not in self._bound_elsewhere else None

    def binds_once(self, name: str) -> bool:
        """True for a name that the module binds once, by the `def` of a function, or `A.f` for one of a class."""
        other = name in self._imported or name in self._values or name in self.classes
        return self._defined.count(name) == 1 and not other and name not in self._bound_elsewhere

    @property
    def _bound_elsewhere(self) -> set[str]:
        """Names that statements such as `if` and `try` bind; looked for once."""
        if self._elsewhere is None:
            self._elsewhere = self._in_others()
        return self._elsewhere

    def _in_others(self) -> set[str]:
        parts = [part for each in self._others for part in walk_scope(each)]
        found = stored_names(parts)
        found |= {part.name for part in parts if isinstance(part, SCOPES) and not isinstance(part, ast.Lambda)}
        imports = [part for part in parts if isinstance(part, (ast.Import, ast.ImportFrom))]
        return found | {name_imported(each) for part in imports for each in part.names}
