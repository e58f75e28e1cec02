"""Compare what two runs returned: bit for bit, or within the tolerance of each dtype.

A result of any structure is first taken apart into named leaves, which can be saved, loaded without running code, and
compared in another process.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch

DEEPEST = 24
PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, slice, range)

HALF_STEPS = 16
"""Rounding steps of a half-precision tensor's largest element that compiled code may be off."""


@dataclass
class Leaves:
    """A value taken apart. Keys are paths into it (`.logits`, `[0]['mask']`).

    `values` tells types, lengths, plain values, dtypes and shapes; `placement` what only an exact comparison asks: of a
    tensor strides, `requires_grad`, and with which input, parameter or earlier leaf it shares memory, of a mapping the
    order of its keys. Tensors without a value, such as gradients, may be there or not.
    """

    values: dict[str, str] = field(default_factory=dict)
    placement: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)


def take_apart(value: Any, *, known: Mapping[int, str] | None = None) -> Leaves:
    """The leaves of `value`. `known` names storages that exist already, see `storages`."""
    leaves = Leaves()
    _Walk(leaves, dict(known or {})).visit(value, "", 0)
    return leaves


def storages(leaves: Leaves, name: str) -> dict[int, str]:
    """The storages of the tensors in `leaves`, each called by `name` and the path to its first tensor."""
    found: dict[int, str] = {}
    for path, tensor in leaves.tensors.items():
        address = _address(tensor)
        if address:
            found.setdefault(address, f"{name}{path}")
    return found


def exact_differences(before: Leaves, after: Leaves, *, limit: int = 5) -> list[str]:
    """What is not the same, bit for bit; NaN equals NaN. At most `limit` lines."""
    return _first(_differences(before, after, exact=True), limit)


def close_difference(expected: Leaves, found: Leaves) -> str | None:
    """The first thing that is not the same within `torch.testing.assert_close`'s tolerance for its dtype.

    For half precision it is `HALF_STEPS` rounding steps of the largest element.
    """
    return next(iter(_first(_differences(expected, found, exact=False), 1)), None)


def digest(tensor: torch.Tensor) -> str:
    """A hash of dtype, shape and content."""
    content = hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
    content.update(_bits(tensor).cpu().numpy().tobytes())
    return content.hexdigest()[:32]


class _Walk:
    def __init__(self, leaves: Leaves, known: dict[int, str]) -> None:
        self._leaves = leaves
        self._known = known
        self._open: dict[int, str] = {}

    def visit(self, value: Any, path: str, depth: int) -> None:
        if isinstance(value, torch.Tensor):
            self._tensor(value, path)
        elif isinstance(value, PLAIN):
            self._leaves.values[path] = f"{type(value).__name__} {value!r}"
        elif id(value) in self._open:
            self._leaves.values[path] = f"the same object as {self._open[id(value)] or 'the whole'}"
        elif depth > DEEPEST:
            self._leaves.values[path] = f"{_name(value)}, too deep to compare"
        else:
            self._open[id(value)] = path
            self._container(value, path, depth)
            del self._open[id(value)]

    def _container(self, value: Any, path: str, depth: int) -> None:
        members = members_of(value)
        if members is None:
            self._leaves.values[path] = _opaque(value)
            return
        self._leaves.values[path] = f"{_name(value)} of {len(members)}"
        if isinstance(value, Mapping):
            self._leaves.placement[path] = f"keys {', '.join(step for step, _ in members)}"
        for step, member in members:
            self.visit(member, path + step, depth + 1)

    def _tensor(self, value: torch.Tensor, path: str) -> None:
        leaves = self._leaves
        leaves.values[path] = f"{_name(value)} {value.dtype} {tuple(value.shape)} {value.layout} on {value.device}"
        stride = value.stride() if value.layout is torch.strided else None
        address = _address(value)
        shares = self._known.setdefault(address, path) if address else path
        shared = f", shares memory with {shares}" if shares != path else ""
        leaves.placement[path] = f"stride {stride}, requires_grad={value.requires_grad}{shared}"
        leaves.tensors[path] = _unwrapped(value)


def members_of(value: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container or of a plain object, None for what has none that can be compared."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, Set):
        return [(f"{{{number}}}", item) for number, item in enumerate(sorted(value, key=repr))]
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        return [(f".{names[i]}" if names else f"[{i}]", item) for i, item in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value)]
    if isinstance(value, type | torch.nn.Module) or callable(value) or not hasattr(value, "__dict__"):
        return None
    return [(f".{name}", item) for name, item in vars(value).items()]


def _opaque(value: Any) -> str:
    """A description without addresses in memory."""
    if hasattr(value, "__array_interface__"):
        content = hashlib.sha256(value.tobytes()).hexdigest()[:32]
        return f"{_name(value)} {value.dtype} {value.shape} {content}"
    return f"{_name(value)} {getattr(value, '__qualname__', '')}".strip()


def _name(value: Any) -> str:
    return type(value).__qualname__


def _unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """Of a subclass only the tensor: a file of leaves must load without the subclass's code."""
    tensor = tensor.detach()
    return tensor if type(tensor) is torch.Tensor else tensor.as_subclass(torch.Tensor)


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # a sparse tensor or a wrapper subclass has no storage of its own
        return 0


def _differences(before: Leaves, after: Leaves, *, exact: bool) -> Iterator[str]:
    yield from _dict_differences(before.values, after.values)
    if exact:
        common = {path: text for path, text in after.placement.items() if path in before.placement}
        yield from _dict_differences({path: before.placement[path] for path in common}, common)
    for path in dict.fromkeys([*before.tensors, *after.tensors]):
        difference = _tensor_difference(before, after, path, exact)
        if difference is not None:
            yield f"{path or 'result'}: {difference}"


def _tensor_difference(before: Leaves, after: Leaves, path: str, exact: bool) -> str | None:
    old, new = before.tensors.get(path), after.tensors.get(path)
    if old is not None and new is not None and old.dtype == new.dtype and old.shape == new.shape:
        return _bit_difference(old, new) if exact else _tolerance_difference(old, new)
    if path in before.values or path in after.values:
        return None  # their descriptions differ, which is told already
    kinds = ["none" if each is None else f"{each.dtype} {tuple(each.shape)}" for each in (old, new)]
    only = old if new is None else new if old is None else None
    # A compiler may make zeros where eager mode makes no gradient.
    if not exact and only is not None and not bool(_plain(only).any()):
        return None
    return f"{kinds[0]} became {kinds[1]}"


def _dict_differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for path in dict.fromkeys([*before, *after]):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        if old is None:
            yield f"{path or 'result'}: new, {new}"
        elif new is None:
            yield f"{path or 'result'}: gone, was {old}"
        else:
            yield f"{path or 'result'}: {old} became {new}"


def _bit_difference(old: torch.Tensor, new: torch.Tensor) -> str | None:
    old, new = _plain(old), _plain(new)
    if torch.equal(_bits(old), _bits(new)):
        return None
    old, new = old.reshape(-1), new.reshape(-1)
    if old.is_complex():  # each part for itself: nan in one says nothing of the other
        pairs = _unequal(torch.view_as_real(old).reshape(-1), torch.view_as_real(new).reshape(-1))
        unequal = pairs.view(-1, 2).any(dim=1)
    else:
        unequal = _unequal(old, new)
    return _told(old, new, unequal) if bool(unequal.any()) else None


def _unequal(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    size = old.element_size()
    unequal = (_bits(old).view(-1, size) != _bits(new).view(-1, size)).any(dim=1)
    return unequal & ~(old.isnan() & new.isnan()) if old.is_floating_point() else unequal


def _tolerance_difference(old: torch.Tensor, new: torch.Tensor) -> str | None:
    rtol, atol = _half_tolerance(old)
    try:
        torch.testing.assert_close(
            _plain(new),
            _plain(old),
            rtol=rtol,
            atol=atol,
            equal_nan=True,
            check_stride=False,
            check_device=False,
        )
    except AssertionError as error:
        return " ".join(str(error).split())
    return None


def _half_tolerance(tensor: torch.Tensor) -> tuple[float | None, float | None]:
    """(rtol, atol) for half precision, by the largest element; None for other dtypes, which have torch's own.

    Inductor keeps in float32 what eager mode rounds after every operation, so that small elements of a tensor differ
    by the rounding errors of large ones.
    """
    if tensor.dtype not in (torch.float16, torch.bfloat16):
        return None, None
    size = _plain(tensor).float().abs().nan_to_num(posinf=0.0)
    largest = float(size.max()) if size.numel() else 0.0
    step = torch.finfo(tensor.dtype).eps
    return step, HALF_STEPS * step * largest


def _told(old: torch.Tensor, new: torch.Tensor, unequal: torch.Tensor) -> str:
    first = int(unequal.nonzero()[0])
    values = f"{old[first].item()!r} became {new[first].item()!r}"
    return f"{int(unequal.sum())} of {unequal.numel()} elements differ, the first at flat index {first}: {values}"


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return _plain(tensor).contiguous().reshape(-1).view(torch.uint8)


def _first(lines: Iterator[str], limit: int) -> list[str]:
    found: list[str] = []
    for line in lines:
        if len(found) == limit:
            return [*found, "and more"] if limit > 1 else found
        found.append(line)
    return found


def sequence_difference(before: Sequence[Any], after: Sequence[Any], what: str) -> str | None:
    """The first position at which two sequences differ, in words."""
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return f"{what} {number}: {old} became {new}"
    if len(before) > len(after):
        return f"{what} {len(after) + 1} is gone: {before[len(after)]}"
    if len(after) > len(before):
        return f"{what} {len(before) + 1} is new: {after[len(before)]}"
    return None
