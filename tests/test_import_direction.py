"""Packages import those below them only, and no modules import each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import graphmend_codemod

TOP = "graphmend_codemod"
ROOT = Path(graphmend_codemod.__file__).parent
# From the ground up. A package imports itself and those before it.
LAYERS = """
    core
    analysis.torch_api analysis.aliasing
    project
    analysis
    rewriting
    rules.framework
    rules.proofs
    rules.control_flow rules.side_effects rules.guards rules.readback rules.dynamic_shapes rules.python rules.advice
    engine
    reporting
    trace
    repository
    evaluation
    migrate
    forge
    bot
    fleet
    lsp
    cli
"""
DEBTS = {  # a summary says what these two find in the file's text, and reads it only where there may be something
    "project.summary.scan -> analysis.callgraph",
    "project.summary.scan -> analysis.list_provenance",
}
LAYER = {f"{TOP}.{name}": at for at, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}


def imports(node: ast.AST, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """What a module imports, and whether only when a function runs. Annotations alone import nothing."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module:
            yield from ((f"{child.module}.{name.name}", lazy) for name in child.names)
        elif isinstance(child, ast.Import):
            yield from ((name.name, lazy) for name in child.names)
        yield from imports(child, lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


@cache
def graph() -> dict[str, set[tuple[str, bool]]]:
    files = {path: ".".join((TOP, *path.relative_to(ROOT).with_suffix("").parts)) for path in ROOT.rglob("*.py")}
    names = {name.removesuffix(".__init__") for name in files.values()}

    def module(name: str) -> str:
        return name if name in names else name.rpartition(".")[0]

    return {
        name.removesuffix(".__init__"): {
            (module(each), lazy) for each, lazy in imports(ast.parse(path.read_bytes())) if module(each) in names
        }
        for path, name in files.items()
    }


def layer(module: str) -> int:
    """The layer of the longest name that is the module's or its package's; the top level is above all."""
    names = [name for name in LAYER if f"{module}.".startswith(f"{name}.")]
    return LAYER[max(names, key=len)] if names else len(LAYER)


def test_packages_import_those_below_them() -> None:
    upward = {
        f"{module} -> {each}".replace(f"{TOP}.", "")
        for module, wanted in graph().items()
        for each, _ in wanted
        if not module.startswith(f"{each}.") and layer(each) > layer(module)
    }
    assert upward == DEBTS


def test_every_package_has_a_layer() -> None:
    packages = {path.parent.relative_to(ROOT).parts for path in ROOT.glob("*/__init__.py")}
    assert {name for (name,) in packages} == {name.split(".")[1] for name in LAYER}


def test_no_modules_import_each_other_in_a_circle() -> None:
    at_import = {module: {each for each, lazy in wanted if not lazy} for module, wanted in graph().items()}
    TopologicalSorter(at_import).prepare()  # raises CycleError with the circle
