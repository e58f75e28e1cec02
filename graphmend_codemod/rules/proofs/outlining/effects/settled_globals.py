"""Variables of modules and classes that an operator's code reads: they must neither be tensors nor change.

Dynamo knows no tensor that only the code inside of an operator reads, and what a traced function changes in a list, a
dictionary or an object becomes real when the graph has run: an operator in that graph sees what was before.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend_codemod.analysis.callgraph import tree_of
from graphmend_codemod.analysis.hazards import short
from graphmend_codemod.analysis.patterns import root_of
from graphmend_codemod.analysis.scope import dotted
from graphmend_codemod.project.index.facts import AttributeFact, AttributeKind
from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.outlining.effects.library_effects import demand_one_value

_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_CONTAINERS = (ast.List, ast.Set, ast.Dict)
_MAKES_NUMBERS = ("builtins.", "math.", "numpy.", "re.", "logging.", "typing.", "functools.", "operator.")
_OF_TORCH = frozenset({"torch.device", "torch.finfo", "torch.iinfo", "torch.Size"})
_CHANGES = frozenset(
    """append extend insert pop remove clear sort reverse update setdefault popitem add discard appendleft popleft fill
    __setitem__ __delitem__""".split()
)


def demand_settled(site: Site, node: ast.AST) -> None:
    """NotProven for a read of a variable of a module or class that may hold a tensor, or that may change."""
    if isinstance(node, ast.Name):
        demand_one_value(site, node.id)
    name = dotted(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    if name is None or not isinstance(getattr(node, "ctx", None), ast.Load):
        return
    scope = site.evaluator.scope
    base, _, last = name.rpartition(".")
    if base and any(each.name == last and each.receiver == base for each in site.summary.writes):
        raise NotProven(_changes(node))
    fact = scope.index.global_fact(scope.module, name)
    if fact is None and base and (owner := scope.resolve_global(base)) is not None:
        facts = scope.index.class_facts(owner)
        fact = None if facts is None else facts.attributes.get(last)
    if fact is not None and not _is_number(fact):
        _demand_settled_value(site, node, name)


def demand_unchanged(site: Site, name: str) -> None:
    """NotProven for a variable of the file that some statement of it changes."""
    demand_one_value(site, name)
    values = _assigned(site.source.text, name)
    if any(isinstance(value, _CONTAINERS) for value in values) and name in names_changed(site.source.text):
        raise NotProven(f"`{name}` may change, and an operator would see what it was before")


def _is_number(fact: AttributeFact) -> bool:
    made = fact.kind is AttributeKind.CALL and fact.callee is not None
    return fact.kind is AttributeKind.CONSTANT or (made and _makes_no_tensor(fact.callee or ""))


def _makes_no_tensor(called: str) -> bool:
    return called in _OF_TORCH or called.startswith(_MAKES_NUMBERS)


def _demand_settled_value(site: Site, node: ast.AST, name: str) -> None:
    """NotProven unless the variable is assigned once, at the top level of this file, and is made of constants."""
    scope = site.evaluator.scope
    values = _assigned(site.source.text, name)
    if len(values) != 1 or scope.resolve_global(name) != f"{scope.module}.{name}":
        raise NotProven(_changes(node) if len(values) > 1 else _may_be_tensor(node))
    if not _is_settled(site, values[0]):
        raise NotProven(_may_be_tensor(node))
    if any(isinstance(part, _CONTAINERS) for part in ast.walk(values[0])) and name in names_changed(site.source.text):
        raise NotProven(_changes(node))


def _changes(node: ast.AST) -> str:
    return f"`{short(node)}` may change, and an operator would see what it was before"


def _may_be_tensor(node: ast.AST) -> str:
    return f"cannot infer that `{short(node)}` holds no Tensor; give it to the function"


def _is_settled(site: Site, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, _DISPLAYS):
        return all(_is_settled(site, each) for each in node.elts)
    if isinstance(node, ast.Dict):
        return all(each is not None and _is_settled(site, each) for each in (*node.keys, *node.values))
    if isinstance(node, ast.UnaryOp):
        return _is_settled(site, node.operand)
    if isinstance(node, ast.BinOp):
        return _is_settled(site, node.left) and _is_settled(site, node.right)
    if isinstance(node, ast.Call):
        return _makes_no_tensor(site.resolve_global(node.func) or "")
    if isinstance(node, (ast.Name, ast.Attribute)):
        name, scope = dotted(node), site.evaluator.scope
        return name is not None and scope.index.global_fact(scope.module, name) is None
    return False


@lru_cache(maxsize=16)
def _names_of_statements(text: str) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree_of(text)):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and node.col_offset == 0:
                    found.setdefault(target.id, []).append(node.value)
    return found


def _assigned(text: str, name: str) -> list[ast.expr]:
    """What the top level of a file assigns to a name."""
    return _names_of_statements(text).get(name, [])


def _changes_owner(method: str) -> bool:
    return method in _CHANGES or (method.endswith("_") and not method.endswith("__"))


@lru_cache(maxsize=16)
def names_changed(text: str) -> frozenset[str]:
    """Names whose elements some statement of a file changes."""
    found: set[str] = set()
    for node in ast.walk(tree_of(text)):
        changed: ast.AST | None = None
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changed = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _changes_owner(node.func.attr):
            changed = node.func.value
        elif isinstance(node, ast.AugAssign):
            changed = node.target
        while isinstance(changed, (ast.Subscript, ast.Attribute)):
            if isinstance(changed, ast.Attribute):
                found.add(changed.attr)
            changed = changed.value
        if changed is not None and (root := root_of(changed)) is not None:
            found.add(root)
    return frozenset(found)
