"""What the rest of the program may ask of a project: names resolved, class families, reach of forward.

A *qualified* name is dotted and absolute: `torch.nn.functional.relu`, `transformers.models.t5.modeling_t5.T5Stack`.
Names of libraries outside the project resolve to the name they are imported by; they are never looked into.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from graphmend_codemod.project.summary.records import ANNOTATION, Write

_NONE: Mapping[str, Any] = {}
OTHERS_ALONE = "others alone: "
"""In front of what catches only exceptions that nothing of torch raises: of the project, or of another library."""


class AttributeKind(enum.Enum):
    """How `self.NAME` or a module-level name came to be. `CHANGED` wins when several assignments disagree."""

    CALL = "call"  # self.norm = nn.LayerNorm(...): `callee` is the qualified name, for classes and functions alike
    PARAMETER = "parameter"  # nn.Parameter(...) or register_parameter
    BUFFER = "buffer"  # register_buffer
    CONSTANT = "constant"  # int, float, str, bool, None literal, or tuple of them
    ARGUMENT = "argument"  # a parameter of __init__, as it is; `callee` is its resolved annotation
    CONFIG = "config"  # an attribute (of any depth) of a parameter of __init__: config.hidden_size
    ANNOTATED = "annotated"  # a tensor by the annotation of the class, `callee`, whatever it is assigned
    OTHER = "other"  # any other expression
    CHANGED = "changed"


class AttributeFact(NamedTuple):
    """One attribute of a class, or one name of a module. `text` is the source of the assigned value, if short."""

    kind: AttributeKind
    callee: str | None = None
    text: str = ""


_REGISTERED = frozenset({AttributeKind.BUFFER, AttributeKind.PARAMETER})
AUGMENTED = AttributeFact(AttributeKind.CHANGED, text="+=")  # what `self.x += 1` leaves of a tensor is one
_TENSOR = re.compile(r"(?:typing\.)?Optional\[torch\.\w*Tensor\]|torch\.\w*Tensor(?: \| None)?")


def merge(first: AttributeFact, second: AttributeFact) -> AttributeFact:
    """What is known when both were assigned. A registered name takes only tensors (and None) afterwards, and the
    annotation of a class says nothing against what is assigned."""
    for one, other in ((first, second), (second, first)):
        given = other.kind in (AttributeKind.CALL, AttributeKind.OTHER) or other == AUGMENTED
        if one.kind in _REGISTERED and (given or _is_annotation(other)):
            return AttributeFact(one.kind, one.callee)
    for one, other in ((first, second), (second, first)):
        if _is_annotation(one):
            tensor = one.callee is not None and _TENSOR.fullmatch(one.callee) is not None
            return AttributeFact(AttributeKind.ANNOTATED, one.callee) if tensor else other
    if first.kind is not second.kind or first.callee != second.callee:
        return AttributeFact(AttributeKind.CHANGED)
    return first if first.text == second.text else AttributeFact(first.kind, first.callee)


def _is_annotation(fact: AttributeFact) -> bool:
    return fact.kind is AttributeKind.ANNOTATED or (fact.kind is AttributeKind.ARGUMENT and fact.text == ANNOTATION)


class FunctionFacts(NamedTuple):
    """What is known of a function of the project from its signature. Annotations and decorators are resolved where
    their names can be; an annotation is kept as source text with resolved names, e.g. `typing.Optional[torch.Tensor]`.
    """

    qualified: str
    parameters: tuple[str, ...] = ()
    annotations: Mapping[str, str] = _NONE
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    compiling_predicate: bool = (
        False  # its value says whether torch.compile is tracing (wraps torch.compiler.is_compiling)
    )
    counts: bool = False  # it may return a 0-dim tensor, `mask.sum()`, whatever its annotation says
    computes: bool = False  # it calls nothing but known operations of torch, and writes nothing but its own names
    loud: bool = False  # as a property, or a method that messages call, it may do more than read
    check: str = ""  # for a function that does nothing but check a condition, what its summary notes
    swallows: bool = False  # as `__exit__` or as a context manager, it may keep an exception from going further
    logger: bool = False  # it returns a logger of the standard library
    gives: str = ""  # for a short function that returns a tensor, what its summary notes: "mask:labels"


class Home(NamedTuple):
    """A file of the project: the name of its module, and its text."""

    module: str
    text: str


class NeedsProject(Exception):
    """The answer depends on files that nobody has read: only the named ones were."""


class ClassFacts(NamedTuple):
    """A class of the project with what it inherits from classes of the project.

    `methods` maps every method and property name, inherited ones included, to its qualified name.
    """

    qualified: str
    is_module: bool
    bases: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeFact] = _NONE
    methods: Mapping[str, str] = _NONE
    properties: frozenset[str] = frozenset()


class IndexView(Protocol):
    """Questions that analysis and rules ask. All answers are deterministic and need no import of user code."""

    def resolve(self, module: str, dotted: str) -> str | None:
        """Qualified name that `dotted` has at the top level of `module`; None when nothing binds its first part.

        Follows imports (aliased, relative, star, under TYPE_CHECKING or try), re-exports and aliases `f = g`.
        Builtins resolve to `builtins.NAME`, and only when the module does not bind the name itself.
        """

    def function(self, qualified: str) -> FunctionFacts | None:
        """Facts of a function or method of the project; None where there is none."""

    def class_facts(self, qualified: str) -> ClassFacts | None:
        """Facts of a class of the project; None where there is none."""

    def global_fact(self, module: str, name: str) -> AttributeFact | None:
        """How a module-level name is assigned in `module`, after imports are followed; None if it is not assigned."""

    def heirs(self, qualified: str) -> tuple[str, ...]:
        """The classes of the project that inherit from this one, at any depth. NeedsProject if not all were read."""

    def users(self, qualified: str) -> tuple[str, ...]:
        """Paths of modules, packages left out, that name a definition of another module. NeedsProject as above."""

    def is_scripted(self, path: str, qualname: str, line: int) -> bool:
        """True for a function that a file of the project gives to TorchScript, alone or with what calls it."""

    def caught(self, path: str, qualname: str, line: int) -> str | None:
        """What may catch the exceptions of a function in its callers, in words. NeedsProject if not all were read.

        `OTHERS_ALONE` is in front where all that catches is for exceptions that torch does not raise.
        """

    def is_loud(self, name: str) -> bool:
        """True if a class of the project has a property or method of this name that may do more than read.

        NeedsProject if not all were read.
        """

    def imports_torch(self, module: str) -> bool:
        """True for a module that nobody imports without torch: a package around it, or what these import, needs it."""

    def home(self, qualified: str) -> tuple[Home, str] | None:
        """The file of a function or class of the project, and its name in there; None where not all files were read."""

    def naming(self, qualified: str) -> tuple[Home, ...]:
        """The other files that name a function or class of the project; none where not all files were read."""

    def writing_callers(self, qualified: str) -> tuple[Home, ...]:
        """The other files in which a function names this one, and looks as if it wrote a tensor in place.

        NeedsProject if not all were read.
        """

    def spells(self, path: str, name: str) -> bool:
        """True for a file of the project in which a name stands anywhere."""

    def readers(self, attribute: str) -> tuple[str, ...]:
        """Paths of modules in which a function reads an attribute of this name of a known object. NeedsProject too."""

    def writers(self, attribute: str) -> tuple[tuple[str, Write], ...]:
        """What modules of the project do to an attribute of this name behind another receiver than the own instance.

        Each with the path of the module. NeedsProject if not all were read.
        """


class ReachedFunction(NamedTuple):
    """A function in which Dynamo can meet a break site. `via` says why, for people (`forward of T5Stack`).

    `offered` is true where nothing in the project compiles it, and it takes no tensors: it is there for others to
    call, and more often around their models than in them.
    """

    qualname: str  # inside the module: `T5Stack.forward`, nested functions dotted: `outer.inner`
    line: int  # of the `def`
    class_qualified: str | None = None  # the class whose `self` it gets, also for nested functions that take `self`
    via: str = ""
    offered: bool = False
