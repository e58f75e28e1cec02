"""Run a model's calls, in eager mode or compiled, and keep all that can be observed of them."""

from __future__ import annotations

import contextlib
import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from graphmend_evaluation.compare import (
    DEEPEST,
    PLAIN,
    Leaves,
    close_difference,
    digest,
    exact_differences,
    members_of,
    sequence_difference,
    storages,
    take_apart,
)
from graphmend_evaluation.counting import BreakRecorder, Call, strict_error
from graphmend_evaluation.loading import Factory, Model, load_pins, save_pins, seed
from graphmend_evaluation.messages import listening
from graphmend_evaluation.results import Counts, Message, from_json

_TORCH_ATTRIBUTES = frozenset({*vars(torch.nn.Module()), "_compiled_call_impl"})


@dataclass
class Observed:
    """One call. `state` maps names of parameters, buffers, attributes, inputs and random number generators, as they
    are after the call, to digests; `result` also holds gradients, where the factory asks for them. `buffers` are those
    that are not what they were before the first call.
    """

    error: str | None
    result: Leaves = field(default_factory=Leaves)
    buffers: Leaves = field(default_factory=Leaves)
    state: dict[str, str] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()


def eager_run(factory: Factory, folder: Path, pins: Path | None) -> None:
    """Run every call in eager mode and save what is observed; without `pins` also this run's weights and inputs."""
    model = factory.make()
    if pins is None:
        save_pins(model, folder)
    else:
        load_pins(model, pins)
    save(observe(model, model.target, factory.root), folder / "eager.pt")


def compiled_run(factory: Factory, folder: Path, pins: Path) -> Counts:
    """Run every call compiled, save what is observed, and count; then ask for the strict verdict on a new model."""
    model = factory.make()
    load_pins(model, pins)
    recorder = BreakRecorder(factory.root)
    with recorder.recording(len(model.calls)):
        compiled = torch.compile(model.target, backend=recorder.backend, dynamic=False)
        observed = observe(model, compiled, factory.root)
    save(observed, folder / "compiled.pt")
    again = factory.make()
    load_pins(again, pins)
    with modes(again), listening(factory.root):
        seed()
        return recorder.counts(strict_error(again.target, again.calls))


def save(observed: list[Observed], path: Path) -> None:
    """Save for `load`, in another process."""
    torch.save(
        [
            {
                "error": each.error,
                "result": {name: getattr(each.result, name) for name in ("values", "placement", "tensors")},
                "buffers": each.buffers.tensors,
                "state": each.state,
                "messages": [asdict(message) for message in each.messages],
            }
            for each in observed
        ],
        path,
    )


def load(path: Path) -> list[Observed]:
    """What `save` wrote. Nothing in the file is executed."""
    return [
        Observed(
            item["error"],
            Leaves(**item["result"]),
            Leaves(tensors=item["buffers"]),
            item["state"],
            tuple(from_json(Message, message) for message in item["messages"]),
        )
        for item in torch.load(path, weights_only=True)
    ]


def eager_differences(before: list[Observed], after: list[Observed]) -> tuple[str, ...]:
    """What is not identical in two eager runs of the same calls, in words."""
    found: list[str] = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
        if old.error != new.error:
            found.append(f"call {number} {_ended(old)}, now {_ended(new)}")
        found += [f"call {number}, {line}" for line in exact_differences(old.result, new.result)]
        message = sequence_difference(old.messages, new.messages, "message")
        if message is not None:
            found.append(f"call {number}, {message}")
        changed = [name for name in {**old.state, **new.state} if old.state.get(name) != new.state.get(name)]
        if changed:
            found.append(f"call {number}, other state after it: {', '.join(changed[:5])}")
    return tuple(found)


def compiled_difference(eager: Observed, compiled: Observed) -> str | None:
    """The first thing in a compiled call, or in the buffers after it, that is further from the eager one than its
    dtype's tolerance.
    """
    if eager.error is not None or compiled.error is not None:
        return None
    return close_difference(eager.result, compiled.result) or _buffer_difference(eager.buffers, compiled.buffers)


def _buffer_difference(eager: Leaves, compiled: Leaves) -> str | None:
    for name in dict.fromkeys([*eager.tensors, *compiled.tensors]):
        if name not in compiled.tensors:
            return f"{name}: written in eager mode only"
        if name not in eager.tensors:
            return f"{name}: written in compiled code only"
    return close_difference(eager, compiled)


def _ended(observed: Observed) -> str:
    return f"raised {observed.error}" if observed.error is not None else "returned"


def observe(model: Model, target: Callable[..., Any], root: Path) -> list[Observed]:
    """Call `target`, which is the model's own or a compiled form of it, with each of the model's calls."""
    with modes(model), listening(root) as stream:
        seed()
        found = []
        start = {name: digest(buffer) for name, buffer in _buffers(model).items()}
        for call in model.calls:
            observed = _one_call(model, target, call, root)
            observed.buffers.tensors = {
                f"buffer {name}": buffer.detach().clone()
                for name, buffer in _buffers(model).items()
                if digest(buffer) != start.get(name)
            }
            observed.state = _state(model, call)
            observed.messages = stream.take()
            found.append(observed)
        return found


def _one_call(model: Model, target: Callable[..., Any], call: Call, root: Path) -> Observed:
    known, held = _memory(model, call)
    try:
        output = call.on(target)
        if model.gradients:
            backward(model, output)
    except Exception as error:  # the model's own exceptions are observed like its outputs
        return Observed(f"{type(error).__name__}: {error}")
    result = take_apart(output, known=known)
    held.clear()
    if model.gradients:
        result.tensors.update(_gradients(model, call))
    # A later call may write into what this one returned.
    result.tensors = {path: tensor.detach().clone() for path, tensor in result.tensors.items()}
    return Observed(None, result)


@contextlib.contextmanager
def modes(model: Model) -> Iterator[None]:
    """Gradients on or off, as the factory asks."""
    with torch.set_grad_enabled(model.gradients):
        yield


def backward(model: Model, output: Any) -> None:
    """Backward from everything in `output` that has a gradient, into gradients that were cleared."""
    for tensor in _parameters(model).values():
        tensor.grad = None
    leaves = _Differentiable()
    leaves.visit(output)
    if leaves.total is not None:
        leaves.total.backward()  # type: ignore[no-untyped-call]


class _Differentiable:
    """Sums all outputs that have a gradient, each entry with a weight of its own so that none cancels another."""

    def __init__(self) -> None:
        self.total: torch.Tensor | None = None
        self._seen: set[int] = set()

    def visit(self, value: Any, depth: int = 0) -> None:
        if id(value) in self._seen or depth > DEEPEST:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if value.requires_grad and value.numel():
                self._add(torch.view_as_real(value.resolve_conj()) if value.is_complex() else value)
        elif not isinstance(value, PLAIN):
            for _, member in members_of(value) or ():
                self.visit(member, depth + 1)

    def _add(self, value: torch.Tensor) -> None:
        weights = torch.linspace(0.5, 1.5, value.numel(), device=value.device).view(value.shape)
        term = (value.float() * weights).sum()
        self.total = term if self.total is None else self.total + term


def _parameters(model: Model) -> dict[str, torch.Tensor]:
    return {} if model.module is None else dict(model.module.named_parameters())


def _buffers(model: Model) -> dict[str, torch.Tensor]:
    return {} if model.module is None else dict(model.module.named_buffers())


def _gradients(model: Model, call: Call) -> dict[str, torch.Tensor]:
    """Of parameters and of those arguments that gather them."""
    named: dict[str, Any] = {f"argument {number}": value for number, value in enumerate(call.args)}
    named.update({f"argument {name}": value for name, value in (call.kwargs or {}).items()})
    leaves = {name: value for name, value in named.items() if isinstance(value, torch.Tensor) and value.is_leaf}
    candidates = {**_parameters(model), **leaves}
    return {f"gradient of {name}": each.grad for name, each in candidates.items() if each.grad is not None}


def _memory(model: Model, call: Call) -> tuple[dict[int, str], list[torch.Tensor]]:
    """Which storages exist before a call, and tensors that hold them: an output that shares one of them is an alias.

    A storage that the call gives up (`self.scale.data = new`) must not be free before the outputs are looked at: its
    address would soon be that of another tensor.
    """
    given = take_apart([call.args, dict(call.kwargs or {})])
    known, held = storages(given, "input"), [*given.tensors.values()]
    if model.module is not None:
        for name, tensor in [*model.module.named_parameters(), *model.module.named_buffers()]:
            leaves = take_apart(tensor)
            known.update(storages(leaves, name))
            held += leaves.tensors.values()
    return known, held


def _state(model: Model, call: Call) -> dict[str, str]:
    state = {"torch random numbers": digest(torch.get_rng_state()), "python random numbers": _hash(random.getstate())}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["CUDA random numbers"] = digest(torch.cuda.get_rng_state())
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state["numpy random numbers"] = _hash(numpy.random.get_state()[1].tobytes())
    known: dict[int, str] = {}
    state.update(_digests([call.args, dict(call.kwargs or {})], "input", known))
    seen: set[int] = set()
    for name, module in [] if model.module is None else model.module.named_modules():
        for attribute, value in _attributes(module):
            if id(value) not in seen:  # one configuration object serves all layers
                seen.add(id(value))
                state.update(_digests(value, f"{name}.{attribute}".lstrip("."), known))
    return state


def _attributes(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Parameters, buffers and what the model's own code keeps on the module."""
    yield from module.named_parameters(recurse=False)
    yield from module.named_buffers(recurse=False)
    for name, value in vars(module).items():
        if name not in _TORCH_ATTRIBUTES and not isinstance(value, torch.nn.Module):
            yield name, value


def _digests(value: Any, name: str, known: dict[int, str]) -> dict[str, str]:
    """The leaves of a value; of tensors also where they lie. `known` gets their storages."""
    leaves = take_apart(value, known=known)
    for address, place in storages(leaves, name).items():
        known.setdefault(address, place)
    return {
        f"{name}{path}": f"{digest(leaves.tensors[path])} {leaves.placement[path]}" if path in leaves.tensors else text
        for path, text in leaves.values.items()
    }


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]
