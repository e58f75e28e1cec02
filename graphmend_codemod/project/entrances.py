"""Where traced code begins: forwards, compiled functions, distributions, and what a library exports."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphmend_codemod.project.index import families
from graphmend_codemod.project.index.definitions import CONSTRUCTORS, Module
from graphmend_codemod.project.index.project_index import ProjectIndex
from graphmend_codemod.project.summary.candidates import SCRIPT, TENSORS
from graphmend_codemod.project.summary.records import FunctionSummary

CALLS = ("forward", "__call__")
_PLAIN = frozenset({"abc.ABC", "builtins.object", "typing.Generic"})
"""Classes outside the project that say nothing of what those are for that inherit from them."""

_OF_OTHER_THINGS = frozenset(
    {*sys.stdlib_module_names, "torch", "numpy", "typing_extensions", "triton"}
    | set(
        "tensorflow keras flax jax haiku equinox chainer chainerx mxnet paddle mindspore oneflow mlx tinygrad".split()
    )
)
"""Packages whose classes are no modules, but for those that are known to be."""

_METRICS = "torchmetrics."
_OF_METRICS = ("update", "compute")
"""What `forward` of a metric calls, which is in the library."""

_DRIVERS = (".zero_grad()", ".load_state_dict()")
"""What classes call that train models or load their weights: they call compiled code and are none themselves."""


class Step(NamedTuple):
    """A function to look at. `own` is the class that `self` has in it, of a closure as well."""

    module: Module
    function: FunctionSummary
    own: str | None
    via: str


def entrances(index: ProjectIndex, module: Module, traced: frozenset[tuple[str, str]]) -> Iterator[Step]:
    """The functions of a module that Dynamo traces without a call from anywhere in the project."""
    name = module.summary.name
    every = _defined_again(module)
    for item in module.summary.classes:
        qualified = f"{name}.{item.qualname}"
        defined = module.methods.get(item.qualname, {})
        if not defined or not item.bases:
            continue
        methods = [defined[name] for name in CALLS if name in defined]
        if methods and index.is_module(qualified):
            again = [each for each in every.get(item.qualname, ()) if each.name in CALLS and each not in methods]
            for method in (*methods, *again):
                yield Step(module, method, qualified, f"{method.name} of {item.qualname}")
        elif any(base.startswith(_METRICS) for base in index.linear(qualified)[1:]):
            for method in (defined[name] for name in _OF_METRICS if name in defined):
                yield Step(module, method, qualified, f"{method.name} of {item.qualname}")
        elif "forward" in defined and _is_others_module(index, qualified, defined["forward"]):
            yield Step(module, defined["forward"], qualified, f"forward of {item.qualname}")
        elif _is_of_torch(index, qualified):
            for method in defined.values():
                if method.name not in CONSTRUCTORS:
                    yield Step(module, method, qualified, f"method of {item.qualname}")
    for function in module.summary.functions:
        own = f"{name}.{function.owner}" if function.owner else None
        if function.decorators and not families.COMPILERS.isdisjoint(index.decorators(module, function)):
            yield Step(module, function, own, f"torch.compile of {function.qualname}")
        elif (module.summary.path, function.qualname) in traced:
            yield Step(module, function, own, f"recorded run of {function.qualname}")


def _defined_again(module: Module) -> dict[str, list[FunctionSummary]]:
    """The methods of classes that a module defines more than once: which of them runs, only Python knows."""
    names = [each.qualname for each in module.summary.classes]
    if len(set(names)) == len(names):
        return {}
    found: dict[str, list[FunctionSummary]] = {name: [] for name in names if names.count(name) > 1}
    for function in module.summary.functions:
        if function.owner in found:
            found[function.owner].append(function)
    return found


def _is_others_module(index: ProjectIndex, qualified: str, forward: FunctionSummary) -> bool:
    """True for a class with a `forward` whose base is a class of a library that nobody can look up.

    In code that uses torch that is a module: `forward` of an autograd function is static, and torch's own are known.
    """
    if forward.parameters[:1] != ("self",) or len(forward.parameters) == 1 or forward.decorators:
        return False
    bases = [base for base in index.linear(qualified)[1:] if index.class_summary(base) is None]
    return any("." in base and base.partition(".")[0] not in _OF_OTHER_THINGS for base in bases)


def _is_of_torch(index: ProjectIndex, qualified: str) -> bool:
    """True for a distribution, and for a class of tensors: models compute with them as with torch's own."""
    bases = index.linear(qualified)[1:]
    return any(base.startswith("torch.distributions.") or base == "torch.Tensor" for base in bases)


def offered(index: ProjectIndex, modules: Iterable[Module]) -> Iterator[Step]:
    """The functions and methods of plain classes that `import package` offers by name, for others' models to call.

    They have to take tensors, or to hand what they are given to a function that does. Names of submodules are not
    followed, nor what is imported under a condition: what a project has there is too often for scripts. Classes
    that train models are left out.
    """
    names = {module.summary.name.partition(".")[0] for module in modules}
    for name in sorted(names):
        package = index.module(name)
        for qualified in _exported(index, package) if package is not None and package.summary.package else ():
            known = index.function_summary(qualified)
            if known is not None and not known[1].owner:
                if _takes_tensors(index, *known):
                    yield Step(*known, None, f"{known[1].name}, which {name} exports")
            else:
                yield from _methods(index, qualified, name)
    yield from _uncalled(index, modules, names)


def _uncalled(index: ProjectIndex, modules: Iterable[Module], names: Iterable[str]) -> Iterator[Step]:
    """The functions of a package that take tensors and that nothing in it names: they are there for others to call.

    What its tests, examples and scripts call is there for others, too.
    """
    for name in sorted(names):
        if (top := index.module(name)) is None or not top.summary.package:
            continue
        inside = [each for each in modules if _is_part(each.summary.name.split("."), name)]
        used = {_last(ref) for module in inside for each in module.summary.functions for ref in each.refs}
        used |= {_last(mark) for module in inside for each in module.summary.functions for mark in each.decorators}
        for module in inside:
            yield from _not_called(module, used)


def _is_part(path: list[str], package: str) -> bool:
    return path[0] == package and _ASIDE.isdisjoint(path)


def _not_called(module: Module, used: set[str]) -> Iterator[Step]:
    for function in module.summary.functions:
        here = TENSORS in function.returned and not function.owner and not function.decorators
        if here and function.name not in used and not function.name.startswith("_"):
            yield Step(module, function, None, f"{function.name}, which nothing in {module.summary.name} calls")


def _last(spelled: str) -> str:
    return spelled.removesuffix("()").rpartition(".")[2]


_ASIDE = frozenset("benchmark benchmarks conftest examples script scripts setup test testing tests".split())
"""Parts of a project that no model is built from."""


def _methods(index: ProjectIndex, qualified: str, package: str) -> Iterator[Step]:
    known = index.class_summary(qualified)
    if known is None or any(
        index.class_summary(base) is None and base not in _PLAIN for base in index.linear(qualified)
    ):
        return
    module, item = known
    methods = module.methods.get(item.qualname, {})
    drives = any(ref.endswith(_DRIVERS) for each in methods.values() for ref in each.refs)
    if not drives and any(TENSORS in each.returned for each in methods.values()):
        for method in methods.values():
            if method.name == "__call__" or not method.name.startswith("_"):
                yield Step(module, method, qualified, f"{item.qualname}, which {package} exports")


def called_by_library(index: ProjectIndex, qualified: str) -> Iterator[str]:
    """The methods that a library calls while it constructs an instance: `@pydantic.field_validator("time")`.

    The class inherits from one of the library, and a decorator from there marks the method.
    """
    line = index.linear(qualified)
    outside = {base.partition(".")[0] for base in line if "." in base and index.class_summary(base) is None}
    outside -= _OF_OTHER_THINGS  # which only mark: `@abstractmethod`, `@torch.no_grad()`
    for known in filter(None, map(index.class_summary, line)) if outside else ():
        module, item = known
        for method in module.methods.get(item.qualname, {}).values():
            marks = (index.scoped(module, None, each.partition("(")[0]) for each in method.decorators)
            if not outside.isdisjoint(each.partition(".")[0] for each in marks if each is not None):
                yield method.name


def _takes_tensors(index: ProjectIndex, module: Module, function: FunctionSummary) -> bool:
    if TENSORS in function.returned or SCRIPT in function.returned:
        return TENSORS in function.returned
    named = (index.scoped(module, function, ref.removesuffix("()")) for ref in function.refs if ref.endswith("()"))
    called = (index.function_summary(each) for each in named if each is not None)
    return any(TENSORS in each[1].returned for each in called if each is not None)


def _exported(index: ProjectIndex, module: Module) -> Iterator[str]:
    """The qualified names of what a module of the project offers to `from module import name`."""
    summary = module.summary
    listed = summary.exports
    if listed is None:
        kinds = {"import", "function", "class"} if summary.package else {"function", "class"}
        every = (each.name for each in summary.bindings if each.kind in kinds and not each.conditional)
        listed = tuple(dict.fromkeys(name for name in every if not name.startswith("_")))
    late = any(each.for_types for each in summary.bindings)
    for star in () if late else summary.stars:
        source = index.star_source(module, star)
        if source is not None and source is not module:
            yield from _exported(index, source)
    for name in listed:
        found = index.resolve(summary.name, name)
        if found is not None:
            yield found


def takes_self(function: FunctionSummary) -> bool:
    """True for a method that gets its instance, and for a function that names its first parameter `self`."""
    if function.owner:
        return bool(function.parameters) and "staticmethod" not in function.decorators
    return function.parameters[:1] == ("self",)
