"""Whether an edited file calls and defines what it did before.

Then the search for reached functions (`reach.py`) would find in the rest of the project what it found, and is not
repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.records import Binding, FunctionSummary, ModuleSummary

_TORCH = "torch"


def leads_as_before(old: ModuleSummary, new: ModuleSummary, index: ProjectIndex, names: frozenset[str]) -> bool:
    """True where two states of a file differ in nothing that a search through the project looks at.

    `index` has either state, which differ in imports of torch alone where that matters. `names` are all names that the
    project gives to anything: what a function uses under another name, or behind torch's, leads nowhere.
    """
    if old == new:
        return True
    if (old.stars, old.exports, set(old.writes)) != (new.stars, new.exports, set(new.writes)):
        return False
    if _bindings(old) != _bindings(new) or len(old.functions) != len(new.functions):
        return False
    if [each._replace(line=0) for each in old.classes] != [each._replace(line=0) for each in new.classes]:
        return False
    leads = _Leads(index, old.name, names)
    return all(leads.of(one) == leads.of(other) for one, other in zip(old.functions, new.functions, strict=True))


def given_names(summaries: Iterable[ModuleSummary]) -> frozenset[str]:
    """All names that modules give: to functions, classes, attributes, and to what they import or assign."""
    found = set[str]()
    for each in summaries:
        for binding in each.bindings:
            found.add(binding.name)
            found.add(binding.target.rpartition(":")[2].rpartition(".")[2])
        for function in each.functions:
            found.add(function.name)
            found.update(name for name, _ in function.imports)
        for item in each.classes:
            found.add(item.qualname.rpartition(".")[2])
            found.update(attribute.name for attribute in item.attributes)
    return frozenset(found)


def _bindings(summary: ModuleSummary) -> list[Binding]:
    """Without imports of torch, which our edits may need."""
    return [each for each in summary.bindings if each.kind != "import" or each.target.partition(".")[0] != _TORCH]


class _Leads:
    """What leads from the functions of one module to others, without what edits of ours may change."""

    def __init__(self, index: ProjectIndex, module: str, names: frozenset[str]) -> None:
        self._index, self._module, self._names = index, module, names

    def of(self, function: FunctionSummary) -> tuple[Any, ...]:
        """What a search looks at in a function."""
        bare = function._replace(line=0, end_line=0, candidates=(), refs=(), types=(), caught=())
        own = {name for name, _ in function.imports}
        refs = [ref for ref in function.refs if self._leads(ref, own)]
        types = [(name, source) for name, source in function.types if self._leads(source, own)]
        caught = [(used, by) for used, by in function.caught if self._leads(used, own)]
        return bare, refs, types, caught

    def _leads(self, ref: str, own: Collection[str]) -> bool:
        spelled = ref.removesuffix("()")
        root, *parts = spelled.split(".")
        if root in own or not root.isidentifier():
            return True
        if root != "self" and self._index.resolve(self._module, root) is not None:
            found = self._index.resolve(self._module, spelled) or ""
            facts = self._index.function(found)
            outside = found.partition(".")[0] in (_TORCH, "builtins") and self._index.entity(found) is None
            return not outside and not (facts is not None and facts.compiling_predicate)
        return not self._names.isdisjoint(parts if parts or root == "self" else [root])
