"""Which attributes of a class hold nothing but Python values, as far as one module shows."""

from __future__ import annotations

import ast

from graphmend_codemod.project.summary.body import Body
from graphmend_codemod.project.summary.candidates import needs

_SELF = "self."


class Held:
    """Assignments to attributes by class: each a list of the attributes it depends on, None for a possible tensor."""

    def __init__(self) -> None:
        self._assigned: dict[str, dict[str, list[list[str] | None]]] = {}
        self._bases: dict[str, tuple[str, ...]] = {}

    def add_class(self, qualname: str, bases: tuple[str, ...]) -> None:
        """A class of the module with its bases as they are spelled."""
        self._bases[qualname] = bases

    def add_value(self, qualname: str, name: str, value: ast.expr | None) -> None:
        """An assignment in the class body."""
        sources: list[str] = []
        tensor = value is not None and (needs(value, sources) or bool(sources))
        self._of(qualname, name).append(None if tensor else [])

    def add_method(self, qualname: str, body: Body, construction: bool) -> None:
        """The assignments to `self` in a method; arguments of `__init__` count as Python values unless annotated."""
        for name, kind, value in body.attributes:
            sources: list[str] = []
            unknown = bool(kind) or value is None or needs(value, sources)
            dependencies = None if unknown else _dependencies(sources, body, construction)
            self._of(qualname, name).append(dependencies)

    def _of(self, qualname: str, name: str) -> list[list[str] | None]:
        return self._assigned.setdefault(qualname, {}).setdefault(name, [])

    def is_python(self, qualname: str, name: str) -> bool:
        """True when every assignment to the attribute, here or in a base class of this module, is a Python value."""
        return self._is_python(qualname, name, set())

    def _is_python(self, qualname: str, name: str, asked: set[str]) -> bool:
        if name in asked:
            return True
        asked.add(name)
        todo, seen = [qualname], set()
        while todo:
            owner = todo.pop()
            seen.add(owner)
            assigned = self._assigned.get(owner, {}).get(name)
            if assigned is not None:
                return all(
                    needed is not None and all(self._is_python(qualname, each, asked) for each in needed)
                    for needed in assigned
                )
            todo += [base for base in self._bases.get(owner, ()) if base not in seen]
        return False


def _dependencies(sources: list[str], body: Body, construction: bool) -> list[str] | None:
    origins = body.origins(sources) if sources else set()
    if origins is None:
        return None
    found: list[str] = []
    for name in sorted(origins):
        if name.startswith(_SELF):
            found.append(name[len(_SELF) :])
        elif name in body.parameters and not body.is_python_parameter(name):
            annotation = body.parameters[name]
            if not construction or (annotation and "Config" not in annotation):
                return None
    return found
