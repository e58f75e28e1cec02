"""Objects of libraries that Dynamo does not trace: what is asked of them breaks the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.scope import dotted, parameters, walk_scope
from graphmend_codemod.project.index.facts import AttributeKind
from graphmend_codemod.project.summary.candidates import FOREIGN
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import assigned
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced
from graphmend_codemod.rules.proofs.untraced.other_files import defined


def of_foreign_object(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`wavelet.wavefun(3)` and `len(wavelet)`, where `wavelet` is a `pywt.Wavelet`."""
    owner = node.args[0] if called == "builtins.len" and node.args else None
    if isinstance(node.func, ast.Attribute) and (called is None or _is_of_module(site, called)):
        owner = node.func.value
    library = next((each for each in _classes(site, owner) if each in FOREIGN), None) if owner is not None else None
    if library is None:
        return None
    advice = f"Dynamo does not trace `{library}`; manually compute the result before the compiled function, and keep it"
    return Untraced(node, "uses an object of a library that is not written with torch", advice)


def made_foreign(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`Inputs(time=time)`, where `Inputs` is a class of the project that inherits from `pydantic.BaseModel`."""
    base = next((each for each in _bases(site, called) if each.partition(".")[0] in FOREIGN), None) if called else None
    if base is None:
        return None
    advice = (
        f"Dynamo does not trace the constructor of `{base}`; manually make the object before the compiled function, "
        "or check and convert the values without it under `torch.compiler.is_compiling()`"
    )
    return Untraced(node, "constructs an object of a library that is not written with torch", advice)


def compiled_elsewhere(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`fill(costs)`, and `fill[grid](costs)`, where `fill` is a function of the project with `@numba.njit`."""
    function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
    called = called or (site.resolve(function) if function is not node.func else None)
    if called is None or called.startswith(_OF_OTHERS) or not _is_compiled(site, called):
        return None
    advice = (
        "Dynamo does not trace it; manually write it with functions of torch, "
        "or make it one operator: `torch.library.custom_op`"
    )
    return Untraced(node, "calls a function that Numba compiles", advice)


def _is_compiled(site: Site, qualified: str) -> bool:
    """True for a function with a decorator of Numba, and for a name that one gave a function to, or a maker of such."""
    index = site.evaluator.scope.index
    facts = index.function(qualified)
    if facts is not None:
        return any(each.startswith(_COMPILER) for each in facts.decorators)
    module, _, name = qualified.rpartition(".")
    fact = index.global_fact(module, name)
    made = (fact.callee or "") if fact is not None and fact.kind is AttributeKind.CALL else ""
    maker = defined(index, made) if made and not made.startswith(_COMPILER) else None
    if maker is None:
        return made.startswith(_COMPILER)
    home, definition = maker
    calls = (each for each in walk_scope(definition.node) if isinstance(each, ast.Call))
    return any((index.resolve(home.module, dotted(each.func) or "?") or "").startswith(_COMPILER) for each in calls)


_COMPILER = "numba."
_OF_OTHERS = ("builtins.", "math.", "numpy.", "torch.")


def _bases(site: Site, qualified: str, depth: int = 4) -> Iterator[str]:
    """What a class of the project inherits from, near and far."""
    facts = site.evaluator.scope.index.class_facts(qualified) if depth else None
    for base in facts.bases if facts is not None else ():
        yield base
        yield from _bases(site, base, depth - 1)


def _is_of_module(site: Site, called: str) -> bool:
    """True for a method of what a module of the project holds by a name: `settings.current.get`."""
    module, _, name = called.rpartition(".")[0].rpartition(".")
    return site.evaluator.scope.index.global_fact(module, name) is not None


def _global(site: Site, name: str) -> str | None:
    """What a name of the module is made by: `ContextVar` of `setting = ContextVar("setting")`, also where imported."""
    fact = site.evaluator.scope.index.global_fact(site.summary.name, name)
    return fact.callee if fact is not None and fact.kind is AttributeKind.CALL else None


def _classes(site: Site, owner: ast.expr) -> Iterator[str]:
    """The libraries that the classes come from that an object may have."""
    names: list[str | None] = [site.value(owner).instance_of]
    if isinstance(owner, ast.Name):
        given = next((each for each in parameters(site.evaluator.scope.node) if each.arg == owner.id), None)
        said = ast.walk(given.annotation) if given is not None and given.annotation is not None else ()
        names += [site.resolve_global(each) for each in said if isinstance(each, (ast.Name, ast.Attribute))]
        made = (each.func for each in assigned(site, owner.id) if isinstance(each, ast.Call))
        names += [site.resolve(each) for each in made if (dotted(each) or "").rpartition(".")[2][:1].isupper()]
        outside = None if site.evaluator.scope.is_local(owner.id) else _global(site, owner.id)
        names.append(outside)
    elif isinstance(owner, ast.Attribute) and dotted(owner) == f"{site.evaluator.scope.self_name}.{owner.attr}":
        fact = site.evaluator.scope.attribute(owner.attr)
        names.append(fact.callee if fact is not None else None)
    return (each.partition(".")[0] for each in names if each is not None)
