"""Which function a call runs, and who calls one: in the file of the call, or in another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.callgraph import Definition
from graphmend_codemod.analysis.patterns import is_name
from graphmend_codemod.analysis.scope import dotted, walk_scope
from graphmend_codemod.project.index.facts import Home
from graphmend_codemod.rules.proofs.untraced import other_files
from graphmend_codemod.rules.proofs.untraced.frames import Files, Frame, Source


def callers(files: Files, frame: Frame, definition: Definition) -> Iterator[tuple[Home | None, Definition, ast.Call]]:
    """The calls of a function, first those in its file; of a constructor those of its class."""
    calls, made = files.calls_at(frame), definition.node.name == "__init__" and bool(definition.owner)
    if calls is not None:
        here = other_files.constructions(calls, definition.owner) if made else calls.callers(definition)
        yield from ((frame.home, caller, call) for caller, call in here)
    if made or not definition.owner:
        qualified = f"{files.module_of(frame)}.{definition.owner if made else definition.qualname}"
        yield from other_files.callers(files.index, qualified)


def callee(files: Files, source: Source, node: ast.Call) -> Frame | None:
    """The function that a call runs, also one that is defined inside of the caller, or in another file."""
    found = _callee_here(files, source, node) if _may_be_of_file(files, source, node.func) else None
    return found or _callee_elsewhere(files, source, node)


def _callee_here(files: Files, source: Source, node: ast.Call) -> Frame | None:
    frame, calls = source.frame, files.calls_at(source.frame)
    definition = frame.definition
    found = calls.callee(definition, node) if calls is not None and definition is not None else None
    if found is not None:
        return Frame(found.node, found, through=(node, frame), home=frame.home)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and calls is not None:
        owner = node.func.value.id
        key = calls.method(owner, node.func.attr) if calls.has_class(owner) else None
        method = calls.definitions[key] if key is not None else None
        return Frame(method.node, method, through=(node, frame), home=frame.home) if method is not None else None
    for each in walk_scope(frame.node) if isinstance(node.func, ast.Name) else ():
        if isinstance(each, ast.FunctionDef) and each.name == node.func.id:  # type: ignore[attr-defined]
            return Frame(each, None, through=(node, frame), home=frame.home)
    return None


def _callee_elsewhere(files: Files, source: Source, node: ast.Call) -> Frame | None:
    """The function of another file that a call runs, by what the index says of names, classes and attributes."""
    qualified = files.resolve(source, node.func)
    root, *attributes = (dotted(node.func) or "").split(".")
    if qualified is None and root == "self":
        qualified = other_files.method_of(files.index, files.class_facts(source.frame), attributes)
    elif qualified is None and root:
        name = ast.copy_location(ast.Name(root, ast.Load()), node)
        made = (each.func for each in files.before(source.frame, name) if isinstance(each, ast.Call))
        kinds = (files.resolve(source, each) for each in made)
        facts = next((each for kind in kinds if kind and (each := files.index.class_facts(kind)) is not None), None)
        qualified = other_files.method_of(files.index, facts, attributes)
    found = other_files.defined(files.index, qualified) if qualified is not None else None
    if found is None:
        return None
    return Frame(found[1].node, found[1], through=(node, source.frame), home=found[0])


def _may_be_of_file(files: Files, source: Source, function: ast.expr) -> bool:
    """False for what comes from elsewhere for certain: nobody needs to read the file for it."""
    called = files.resolve(source, function)
    if called is not None:
        return called.startswith(f"{files.module_of(source.frame)}.")
    if isinstance(function, ast.Attribute):
        return is_name(function.value, "self") and _is_near(files, source.frame, function.attr)
    return isinstance(function, ast.Name)


def _is_near(files: Files, frame: Frame, name: str) -> bool:
    """True for a method or a layer of the instance whose class stands in the file of the frame."""
    facts = files.site.evaluator.scope.class_facts if frame.home is None else files.class_facts(frame)
    found = facts.methods.get(name) if facts is not None else None
    fact = facts.attributes.get(name) if facts is not None else None
    found = found or (fact.callee if fact is not None else None)
    return found is not None and found.startswith(f"{files.module_of(frame)}.")
