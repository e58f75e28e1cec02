"""Objects of libraries that Dynamo does not trace: what is asked of them breaks the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphmend_codemod.analysis.scope import dotted, parameters
from graphmend_codemod.project.summary.candidates import FOREIGN
from graphmend_codemod.rules.framework.site import Site
from graphmend_codemod.rules.proofs.untraced.evidence import assigned
from graphmend_codemod.rules.proofs.untraced.kinds import Untraced


def of_foreign_object(site: Site, node: ast.Call, called: str | None) -> Untraced | None:
    """`wavelet.wavefun(3)` and `len(wavelet)`, where `wavelet` is a `pywt.Wavelet`."""
    owner = node.args[0] if called == "builtins.len" and node.args else None
    if called is None and isinstance(node.func, ast.Attribute):
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


def _bases(site: Site, qualified: str, depth: int = 4) -> Iterator[str]:
    """What a class of the project inherits from, near and far."""
    facts = site.evaluator.scope.index.class_facts(qualified) if depth else None
    for base in facts.bases if facts is not None else ():
        yield base
        yield from _bases(site, base, depth - 1)


def _classes(site: Site, owner: ast.expr) -> Iterator[str]:
    """The libraries that the classes come from that an object may have."""
    names: list[str | None] = [site.value(owner).instance_of]
    if isinstance(owner, ast.Name):
        given = next((each for each in parameters(site.evaluator.scope.node) if each.arg == owner.id), None)
        said = ast.walk(given.annotation) if given is not None and given.annotation is not None else ()
        names += [site.resolve_global(each) for each in said if isinstance(each, (ast.Name, ast.Attribute))]
        made = (each.func for each in assigned(site, owner.id) if isinstance(each, ast.Call))
        names += [site.resolve(each) for each in made if (dotted(each) or "").rpartition(".")[2][:1].isupper()]
    elif isinstance(owner, ast.Attribute) and dotted(owner) == f"{site.evaluator.scope.self_name}.{owner.attr}":
        fact = site.evaluator.scope.attribute(owner.attr)
        names.append(fact.callee if fact is not None else None)
    return (each.partition(".")[0] for each in names if each is not None)
