"""Annotations as facts: what a parameter or a result is said to be."""

from __future__ import annotations

import re
from functools import lru_cache

from graphmend_codemod.analysis import torch_api
from graphmend_codemod.analysis.values import UNKNOWN, FreshNames, Origin, Value, ValueKind, python

_PYTHON_TYPES = frozenset(
    "int float bool str bytes complex builtins.int builtins.float builtins.bool builtins.str".split()
)
_SHAPED = re.compile(r"^jaxtyping\.(\w+)\[(.*)\]$|^torchtyping\.TensorType\[.*\]$", re.DOTALL)
"""Annotations that say a shape and a dtype: `Float[Tensor, "batch 3"]`, `TensorType["batch"]`."""
_WRAPPERS = re.compile(r"^(?:typing\.|typing_extensions\.)?(Optional|Union|Annotated|Final)\[(.*)\]$", re.DOTALL)


def split_top(text: str, separator: str) -> list[str]:
    """Split at a separator outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == separator and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return parts


@lru_cache(maxsize=4096)
def alternatives(annotation: str) -> tuple[str, ...]:
    """The members of a union, `None` for None; one member when it is no union."""
    annotation = annotation.strip().strip("'\"").strip()
    if len(parts := split_top(annotation, "|")) > 1:
        return tuple(member for part in parts for member in alternatives(part))
    if (shaped := _SHAPED.match(annotation)) is not None:
        member = split_top(shaped[2], ",")[0] if shaped[1] else "torch.Tensor"
        return ("torch.BoolTensor",) if (shaped[1], member) == ("Bool", "torch.Tensor") else alternatives(member)
    match = _WRAPPERS.match(annotation)
    if match is None:
        return (annotation,)
    inner = split_top(match[2], ",")
    if match[1] == "Optional":
        return (*alternatives(match[2]), "None")
    if match[1] == "Union":
        return tuple(member for part in inner for member in alternatives(part))
    return alternatives(inner[0])


def value_of(annotation: str | None, names: FreshNames, origin: Origin = Origin.OTHER) -> Value:
    """The value of something with this annotation (resolved source text)."""
    if not annotation:
        return UNKNOWN
    kind, what, optional = _meaning(annotation)
    if kind is ValueKind.TENSOR:
        return names.tensor(what, optional=optional, hint=True)
    if kind is ValueKind.PYTHON:
        return python(origin)
    return UNKNOWN if what is None else Value(ValueKind.UNKNOWN, instance_of=what)


@lru_cache(maxsize=4096)
def _meaning(annotation: str) -> tuple[ValueKind, str | None, bool]:
    """The kind, with the dtype of a tensor or the class of an unknown object, and whether it may be None."""
    every = alternatives(annotation)
    optional = "None" in every
    members = [member for member in every if member != "None"]
    if members and all(member in torch_api.TENSOR_TYPES for member in members):
        dtypes = {torch_api.TYPED_TENSORS.get(member) for member in members}
        return ValueKind.TENSOR, dtypes.pop() if len(dtypes) == 1 else None, optional
    if members and all(member in _PYTHON_TYPES for member in members):
        return ValueKind.PYTHON, None, optional
    single = len(members) == 1 and not optional and "[" not in members[0]
    return ValueKind.UNKNOWN, members[0] if single else None, optional
