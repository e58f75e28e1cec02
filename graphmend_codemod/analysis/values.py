"""Abstract values: what the analysis knows of an expression without running it.

A value is a tensor with facts, a Python object, or unknown. Unknown never becomes a tensor by guessing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

BOOL = "torch.bool"
UINT8 = "torch.uint8"
INT64 = "torch.int64"
SCALAR = "()"
"""The shape of a 0-dim tensor."""

FLOATING = frozenset({"torch.float16", "torch.bfloat16", "torch.float32", "torch.float64", "torch.half", "torch.float"})
_DTYPE_ALIASES = {
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.long": "torch.int64",
    "torch.int": "torch.int32",
    "torch.short": "torch.int16",
}


def canonical_dtype(qualified: str) -> str:
    """`torch.half` and `torch.float16` are one dtype."""
    return _DTYPE_ALIASES.get(qualified, qualified)


def is_floating_dtype(dtype: str | None) -> bool:
    """True for a floating dtype, known by name or only by a test such as `x.is_floating_point()`."""
    return dtype is not None and (dtype in FLOATING or dtype.startswith("float:"))


def is_certainly_no_byte(dtype: str | None) -> bool:
    """True for a dtype that is not uint8, whose `any()` and `all()` are uint8 as well."""
    return dtype is not None and (dtype.startswith("float:") or (dtype.startswith("torch.") and dtype != UINT8))


def is_bool_or_byte(dtype: str | None) -> bool:
    """True for what tests give: bool, or uint8 where the tensor under test may be. Only `BOOL` is bool for certain."""
    return dtype is not None and (dtype == BOOL or dtype.startswith("bool:"))


class ValueKind(enum.Enum):
    """The three things that an expression can be."""

    TENSOR = "tensor"
    PYTHON = "python"
    UNKNOWN = "unknown"


class Origin(enum.Enum):
    """Where a Python value comes from; decides whether a message may contain it."""

    CONSTANT = "constant"  # literals and what is computed from them
    CONFIG = "config"  # attributes that the constructor took from its arguments
    SHAPE = "shape"  # sizes: other at every call, a SymInt under dynamic shapes
    META = "meta"  # dtype, device, flags: fixed by guards
    OTHER = "other"


class Value(NamedTuple):
    """One abstract value.

    `dtype` and `shape` are names: two tensors with the same name have the same dtype (shape) in every execution.
    A concrete dtype is spelled `torch.float16`; the shape `()` is a single 0-dim element.
    `fresh` means that no other object shared the tensor's storage when the value was made. `token` names the object:
    two values with one token are one object. `truth` is the truth value that Dynamo folds the expression to.
    `roots` name what a gradient of the tensor flows into; None means the tensor itself. `elements` are the values
    of a tuple or list whose length is known. `callee` is the qualified name of a function,
    class or module object; `instance_of` the qualified class of an object. `hint` means that only an annotation, what a
    constructor registers, or the class that it gives a layer says that this is a tensor: code elsewhere can make that
    false, so a compile path that relies on it has to ask.
    """

    kind: ValueKind
    dtype: str | None = None
    shape: str | None = None
    grad: bool = True
    optional: bool = False
    fresh: bool = False
    token: str | None = None
    truth: bool | None = None
    origin: Origin = Origin.OTHER
    callee: str | None = None
    instance_of: str | None = None
    elements: tuple[Value, ...] | None = None
    built_from: str | None = None
    roots: frozenset[str] | None = None
    compiling: bool | None = None
    hint: bool = False

    @property
    def is_tensor(self) -> bool:
        """A tensor for certain (not None)."""
        return self.kind is ValueKind.TENSOR and not self.optional

    @property
    def is_python(self) -> bool:
        """A Python object for certain, never a tensor."""
        return self.kind is ValueKind.PYTHON

    @property
    def is_single(self) -> bool:
        """A 0-dim tensor for certain."""
        return self.is_tensor and self.shape == SCALAR

    @property
    def is_floating(self) -> bool:
        """A tensor of a floating dtype that is known by name."""
        return self.is_tensor and is_floating_dtype(self.dtype)


UNKNOWN = Value(ValueKind.UNKNOWN)
NO_TENSOR = UNKNOWN._replace(hint=True)
"""No tensor, whatever a hint says: what a test shows, whose arm meets the other one, where the hint holds again; and an
array of NumPy."""
NONE = Value(ValueKind.PYTHON, truth=False, origin=Origin.CONSTANT)


@cache
def python(origin: Origin = Origin.OTHER, truth: bool | None = None) -> Value:
    """A Python value of which only the origin is known."""
    return Value(ValueKind.PYTHON, origin=origin, truth=truth)


@lru_cache(maxsize=4096)
def callable_value(qualified: str) -> Value:
    """A function, class or module object known by its qualified name."""
    return Value(ValueKind.PYTHON, callee=qualified, truth=None)


class FreshNames:
    """Gives out names for unknown dtypes, shapes and objects, in the order of asking."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, what: str) -> str:
        """A name that was not given out before."""
        self._count += 1
        return f"{what}#{self._count}"

    def tensor(
        self,
        dtype: str | None = None,
        shape: str | None = None,
        *,
        grad: bool = True,
        fresh: bool = False,
        optional: bool = False,
        hint: bool = False,
    ) -> Value:
        """A tensor; facts that are not given get names of their own."""
        dtype = dtype or self.new("dtype")
        return Value(
            ValueKind.TENSOR,
            dtype=dtype,
            shape=shape or self.new("shape"),
            grad=grad and (is_floating_dtype(dtype) or not dtype.startswith(("torch.", "bool:"))),
            fresh=fresh,
            optional=optional,
            token=self.new("tensor"),
            hint=hint,
        )

    def join(self, one: Value, other: Value) -> Value:
        """What holds of a value that is `one` or `other`."""
        if one == other:
            return one
        if one.kind is not other.kind:
            if NO_TENSOR in (one, other) and ValueKind.TENSOR in (one.kind, other.kind):
                return (other if one == NO_TENSOR else one)._replace(hint=True)
            return _join_with_none(one, other)
        if one.kind is ValueKind.PYTHON:
            origin = one.origin if one.origin is other.origin else Origin.OTHER
            same_callee = one.callee if one.callee == other.callee else None
            same_class = one.instance_of if one.instance_of == other.instance_of else None
            return Value(ValueKind.PYTHON, origin=origin, callee=same_callee, instance_of=same_class)
        if one.kind is ValueKind.UNKNOWN:
            return UNKNOWN
        return Value(
            ValueKind.TENSOR,
            dtype=one.dtype if one.dtype == other.dtype else self.new("dtype"),
            shape=one.shape if one.shape == other.shape else self.new("shape"),
            grad=one.grad or other.grad,
            optional=one.optional or other.optional,
            fresh=one.fresh and other.fresh,
            roots=_join_roots(one, other),
            token=one.token if one.token == other.token else self.new("tensor"),
            hint=one.hint or other.hint,
        )


def flags_kept(compiled: Mapping[str, Value], eager: Mapping[str, Value]) -> dict[str, Value]:
    """Names that a compile path with conditions keeps as 0-dim tensors, and that are flags and numbers without it.

    They are tensors where a header asks for one: `isinstance(flag, torch.Tensor)`.
    """
    return {
        name: value._replace(hint=True)
        for name, value in compiled.items()
        if value.is_single
        and not eager.get(name, UNKNOWN).is_tensor
        and (value.dtype == BOOL or eager.get(name, UNKNOWN).is_python)
    }


def _join_roots(one: Value, other: Value) -> frozenset[str] | None:
    """What a gradient of either reaches. Where both differ nothing is known, so the joined tensor stands for itself."""
    return one.roots if one.roots == other.roots else None


def _join_with_none(one: Value, other: Value) -> Value:
    for tensor, none in ((one, other), (other, one)):
        if tensor.kind is ValueKind.TENSOR and none == NONE:
            return tensor._replace(optional=True)
    return UNKNOWN
