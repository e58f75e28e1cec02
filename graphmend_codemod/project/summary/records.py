"""What one module says about itself: small, immutable, and the same whether computed or read back from JSON.

Names are *spelled* as the source has them (`nn.Linear`, `self.norm`, `..utils:logging` for a relative import); the
index resolves them. A summary therefore depends on the module's text alone, which makes it cacheable by content.

These are named tuples because there are tens of thousands of them: they are made faster than dataclasses, and
`json.dumps` takes them as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

ANNOTATION = ":"
"""The `text` of an attribute that the body of a class annotates and gives no value."""


class Value(NamedTuple):
    """What a name or attribute is assigned. `kind` is the value of an `AttributeKind`.

    `spelled` is the callee of a call, the name of an alias, or the annotation of an argument; `wraps` is the function
    that a `partial(f)` or `torch.compile(f)` wraps; `holds` are names listed in a dict, list or tuple display; `reads`
    are all dotted names of a value without `text`, None if not known.
    """

    kind: str
    spelled: str = ""
    text: str = ""
    wraps: str = ""
    holds: tuple[str, ...] = ()
    reads: tuple[str, ...] | None = None


class Binding(NamedTuple):
    """One module-level binding, in order of the source. `kind` is `import`, `function`, `class` or `value`.

    `target` is what is imported, `torch.nn` or `..utils:logging` (module, colon, attribute), or the qualname of the
    definition. `conditional` bindings stand under `if` or `try`; those `for_types` under `if TYPE_CHECKING:`, and bind
    nothing when the code runs.
    """

    name: str
    kind: str
    target: str = ""
    conditional: bool = False
    value: Value | None = None
    for_types: bool = False


class Attribute(NamedTuple):
    """One assignment to `self.NAME`, or to NAME in the class body."""

    name: str
    value: Value


class Write(NamedTuple):
    """One attribute of something other than the own instance that a module gives a value, changes or hooks into.

    `receiver` is what it is an attribute of, as spelled (`model.encoder`, `self` in a nested function), empty where
    that is no name. `how` is `assigned`, `changed` (in place, or through `out=`) or `hooked` (`name` is the layer's).
    `of` is the class of which `isinstance` says that the receiver is, as spelled; the index resolves it.
    """

    name: str
    receiver: str
    how: str
    of: str = ""


class FunctionSummary(NamedTuple):
    """One function, method or nested function. The module body is the function with an empty `qualname`.

    `refs` are the names it uses, `helper()` when called and `self.prop` when only read; `?.name()` is a method called
    on something unknown. `types` pairs a local name with what is known of its value: `Cache()` a call's result,
    `:Optional[Cache]` an annotation or `isinstance` test, `other` an alias. `compiles` pairs the spelling of a
    `compile` callee with that of its argument, and names `torch.jit.is_scripting`. `candidates` says what there is for
    rules to look at: `test`, `log`, `value` (a number read out of a tensor), `list` (a tensor built from a list, or
    integers that a constructor keeps), `rows` and `masked` (elements that a condition chooses), `module` (a recurrent
    layer, or a module that is made outside of `__init__`). `caught` pairs references with what around them may catch an
    exception: `except ValueError`, `with suppress`.
    """

    qualname: str
    line: int
    end_line: int
    owner: str = ""
    outer: str = ""
    parameters: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    returns: str = ""
    decorators: tuple[str, ...] = ()
    imports: tuple[tuple[str, str], ...] = ()
    refs: tuple[str, ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    returned: tuple[str, ...] = ()
    compiles: tuple[tuple[str, str], ...] = ()
    candidates: tuple[str, ...] = ()
    caught: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name that `def` gives it."""
        return self.qualname.rpartition(".")[2]

    @property
    def is_property(self) -> bool:
        """True for properties, cached ones too."""
        return any(
            name.rpartition(".")[2].removesuffix("()") in ("property", "cached_property") for name in self.decorators
        )


class ClassSummary(NamedTuple):
    """One class, also inside functions. Its methods are the functions whose `owner` it is."""

    qualname: str
    line: int
    outer: str = ""
    bases: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()


class ModuleSummary(NamedTuple):
    """One module. `name` and `path` (relative to the root, forward slashes) come from where the file stands.

    `exports` is `__all__` where it is a plain list of strings; `stars` are the modules of `from M import *`. `writes`
    has no assignment of a method to its own instance: these are attributes of its class.
    """

    name: str = ""
    path: str = ""
    package: bool = False
    bindings: tuple[Binding, ...] = ()
    stars: tuple[str, ...] = ()
    exports: tuple[str, ...] | None = None
    functions: tuple[FunctionSummary, ...] = ()
    classes: tuple[ClassSummary, ...] = ()
    writes: tuple[Write, ...] = ()

    def placed(self, name: str, path: str, package: bool) -> ModuleSummary:
        """The same summary for the module `name` at `path`."""
        return self._replace(name=name, path=path, package=package)

    def binds_only(self, name: str, kinds: Collection[str]) -> bool:
        """False for a name that is bound by other than bindings of these kinds, or assigned from outside."""
        others = any(each.name == name and each.kind not in kinds for each in self.bindings)
        return not others and not any(each.name == name and not each.receiver for each in self.writes)


def from_json(data: Sequence[Any]) -> ModuleSummary:
    """The summary that `json.dumps` wrote. Raises ValueError or TypeError when the data has another shape."""
    name, path, package, bindings, stars, exports, functions, classes, writes = data
    return ModuleSummary(
        name,
        path,
        package,
        tuple([_binding(row) for row in bindings]),
        tuple(stars),
        None if exports is None else tuple(exports),
        tuple([_function(row) for row in functions]),
        tuple([_class(row) for row in classes]),
        tuple([Write(*row) for row in writes]),
    )


def _binding(row: Sequence[Any]) -> Binding:
    name, kind, target, conditional, value, for_types = row
    return Binding(name, kind, target, conditional, None if value is None else _value(value), for_types)


def _value(row: Sequence[Any]) -> Value:
    kind, spelled, text, wraps, holds, reads = row
    return Value(kind, spelled, text, wraps, tuple(holds), None if reads is None else tuple(reads))


def _function(row: Sequence[Any]) -> FunctionSummary:
    (qualname, line, end_line, owner, outer, parameters, annotations, returns, decorators, imports, refs, types,
     returned, compiles, candidates, caught) = row  # fmt: skip
    return FunctionSummary(
        qualname,
        line,
        end_line,
        owner,
        outer,
        tuple(parameters),
        _pairs(annotations),
        returns,
        tuple(decorators),
        _pairs(imports),
        tuple(refs),
        _pairs(types),
        tuple(returned),
        _pairs(compiles),
        tuple(candidates),
        _pairs(caught),
    )


def _pairs(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple([(first, second) for first, second in rows]) if rows else ()


def _class(row: Sequence[Any]) -> ClassSummary:
    qualname, line, outer, bases, decorators, attributes = row
    return ClassSummary(
        qualname,
        line,
        outer,
        tuple(bases),
        tuple(decorators),
        tuple([Attribute(name, _value(value)) for name, value in attributes]),
    )
