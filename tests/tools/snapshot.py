"""Values frozen for comparison: tensors bit for bit, containers by content, and who shares storage with whom."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

_PLAIN = (bool, int, str, bytes, complex, type(None), torch.dtype, torch.device, torch.layout, slice)
_MODULE_INTERNALS = frozenset(
    {
        "_parameters",
        "_buffers",
        "_modules",
        "_non_persistent_buffers_set",
        "_is_full_backward_hook",
        "_is_torch_compile",
    }
)
_MAX_SHOWN = 6

SUBJECT = "subject"
"""The name of every module under test."""


@dataclass(frozen=True, repr=False)
class TensorSnapshot:
    """A tensor as it was. `storage` and `identity` are numbers in order of first sight: equal numbers, same thing."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    requires_grad: bool
    storage: int
    identity: int

    def tensor(self) -> torch.Tensor:
        """A new tensor with the same elements."""
        dtype = getattr(torch, self.dtype.removeprefix("torch."))
        if not self.data:
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(bytearray(self.data), dtype=dtype).reshape(self.shape)

    def __str__(self) -> str:
        flat = self.tensor().reshape(-1)
        values = ", ".join(str(value) for value in flat[:_MAX_SHOWN].tolist())
        more = ", ..." if flat.numel() > _MAX_SHOWN else ""
        kind = f"{self.dtype.removeprefix('torch.')}{list(self.shape)}"
        sharing = f"requires_grad={self.requires_grad}, storage #{self.storage}, object #{self.identity}"
        return f"{kind} [{values}{more}] ({sharing})"

    __repr__ = __str__


class Snapshots:
    """Freezes values one after another and numbers tensors and storages as they are first seen.

    Everything numbered is kept alive, so that no address is used twice. Without `signed_zero`, -0.0 is 0.0.
    """

    def __init__(self, *, signed_zero: bool = True) -> None:
        self._signed_zero = signed_zero
        self._alive: list[Any] = []
        self._objects: dict[int, int] = {}
        self._storages: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        """`value` frozen: nested tuples of plain values and `TensorSnapshot`s.

        Objects of the module under test are known by type and fields, others by type alone.
        """
        return self._of(value, ())

    def _of(self, value: Any, seen: tuple[int, ...]) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, float):
            return ("float", value.hex())
        if isinstance(value, enum.Enum):
            return ("enum", type(value).__name__, value.name)
        if isinstance(value, _PLAIN):
            return (type(value).__name__, value if not isinstance(value, slice) else str(value))
        if id(value) in seen:
            return ("seen before", type(value).__name__)
        seen = (*seen, id(value))
        if isinstance(value, dict):
            return (type(value).__name__, tuple((self._of(k, seen), self._of(v, seen)) for k, v in value.items()))
        if isinstance(value, list | tuple):
            return (type(value).__name__, tuple(self._of(item, seen) for item in value))
        if isinstance(value, set | frozenset):
            return (type(value).__name__, tuple(sorted(repr(self._of(item, seen)) for item in value)))
        if isinstance(value, nn.Module):
            return self._module(value, seen)
        if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType | type):
            return ("callable", getattr(value, "__qualname__", type(value).__name__))
        if type(value).__module__ != SUBJECT and not dataclasses.is_dataclass(value):
            return ("object", type(value).__name__)
        fields = sorted(getattr(value, "__dict__", {}).items())
        return (type(value).__name__, tuple((name, self._of(item, seen)) for name, item in fields))

    def _module(self, module: nn.Module, seen: tuple[int, ...]) -> Any:
        fields = {name: value for name, value in vars(module).items() if name not in _MODULE_INTERNALS}
        parts = [
            *module._parameters.items(),
            *module._buffers.items(),
            *module._modules.items(),
            *(
                # Hooks are numbered over the whole process.
                (name, list(value.values()) if "_hooks" in name and isinstance(value, dict) else value)
                for name, value in sorted(fields.items())
                if "_hooks" not in name or value
            ),
        ]
        persistent = tuple(sorted(module._non_persistent_buffers_set))
        return (type(module).__name__, persistent, tuple((name, self._of(value, seen)) for name, value in parts))

    def _tensor(self, tensor: torch.Tensor) -> TensorSnapshot:
        plain = tensor.detach()
        self._alive += [tensor, plain]  # `tensor.data = ...` would free the memory, and another tensor get its address
        # A sparse tensor has no storage of its own to tell apart.
        address = plain.untyped_storage().data_ptr() if plain.layout == torch.strided else 0
        plain = plain.to_dense()
        storage = self._storages.setdefault(address, len(self._storages)) if address else -1
        identity = self._objects.setdefault(id(tensor), len(self._objects))
        return TensorSnapshot(
            dtype=str(tensor.dtype),
            shape=tuple(tensor.shape),
            data=_bytes(plain if self._signed_zero else plain + 0),
            requires_grad=tensor.requires_grad,
            storage=storage,
            identity=identity,
        )


def _bytes(plain: torch.Tensor) -> bytes:
    """The elements' bytes in order; every NaN is the same NaN, -0.0 is not 0.0."""
    # What has one element or none counts as contiguous, whatever its strides are: a copy has plain ones.
    kept = plain.resolve_conj().clone(memory_format=torch.contiguous_format)
    if kept.is_complex():
        kept = torch.view_as_real(kept)
    if kept.is_floating_point() and (missing := torch.isnan(kept)).any():
        kept[missing] = torch.nan
    return bytes(kept.reshape(-1).view(torch.uint8).numpy().tobytes())


def differences(before: Any, after: Any, where: str) -> Iterator[str]:
    """Each place where two frozen values differ, with its path."""
    if before == after:
        return
    if isinstance(before, TensorSnapshot) and isinstance(after, TensorSnapshot):
        named = [
            name
            for name in ("dtype", "shape", "data", "requires_grad", "storage", "identity")
            if getattr(before, name) != getattr(after, name)
        ]
        yield f"{where}: {', '.join(named)}: {before} became {after}"
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            name = old[0] if isinstance(old, tuple) and old and isinstance(old[0], str) else position
            yield from differences(old, new, f"{where}.{name}")
    else:
        yield f"{where}: {_brief(before)} became {_brief(after)}"


def _brief(value: Any) -> str:
    text = str(value) if isinstance(value, TensorSnapshot) else repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
