"""Run a module in eager mode and write down everything that somebody outside could see."""

from __future__ import annotations

import ast
import contextlib
import io
import logging
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TextIO

import numpy
import torch
from torch import nn

from tests.tools.snapshot import SUBJECT, Snapshots
from tests.tools.subject import VARIANTS, Source, evaluate, load, mapped, parameter_dtype

_SEED = 20


@dataclass(frozen=True)
class Scenario:
    """How a module is called. `gradients` is one of `off`, `parameters`, `leaves` and `inner`.

    `parameters`: grad mode is on, inputs require none. `leaves`: floating inputs require gradients. `inner`: they are
    results of an operation on such leaves, so that in-place writes are allowed. `inference`: inference mode.
    """

    training: bool = False
    gradients: str = "parameters"
    variant: str = "as given"
    shared: bool = False

    def __str__(self) -> str:
        mode = "train" if self.training else "eval"
        return f"{mode}, gradients {self.gradients}, inputs {self.variant}{', shared' if self.shared else ''}"


@dataclass(frozen=True)
class Event:
    """A log record, a warning or a piece of text on a stream. `line` is where the subject stands, None elsewhere."""

    what: tuple[Any, ...]
    line: int | None = None


@dataclass(frozen=True)
class Observation:
    """One call: every field is frozen, so that two observations can be compared."""

    outcome: Any
    events: tuple[Event, ...]
    inputs: Any
    state: Any
    random: Any
    gradients: Any


@contextlib.contextmanager
def installed(module: types.ModuleType) -> Iterator[None]:
    """The module can be imported by its name, as Dynamo and dataclasses expect."""
    previous = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if previous is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = previous


def seed(number: int = _SEED) -> None:
    """Put every random number generator into a known state."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed keeps a stack trace a call for CUDA
    random.seed(number)
    numpy.random.seed(number)


def build(module: types.ModuleType, name: str, scenario: Scenario) -> Any:
    """The object that is called: an instance of a class, what a factory returns, or a function itself."""
    seed()
    made = getattr(module, name)
    if isinstance(made, type) or name.startswith("make"):
        made = made()
    if isinstance(made, nn.Module):
        made.train(scenario.training)
        dtype = parameter_dtype(scenario.variant)
        if dtype is not None:
            made.to(dtype)
    return made


def arguments(
    module: types.ModuleType, expression: str, scenario: Scenario
) -> tuple[tuple[Any, ...], dict[str, Any], list[torch.Tensor]]:
    """Positional and keyword arguments for one call, and the leaves whose gradients are of interest."""
    args, kwargs = mapped(evaluate(expression, module), VARIANTS[scenario.variant])
    leaves: list[torch.Tensor] = []
    if scenario.shared:
        args, kwargs = mapped((args, kwargs), _sharing())
    if scenario.gradients not in {"leaves", "inner"}:
        return args, kwargs, leaves

    def prepare(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        leaf = tensor.detach().requires_grad_()
        leaves.append(leaf)
        return leaf if scenario.gradients == "leaves" else leaf.view_as(leaf) * 1

    args, kwargs = mapped((args, kwargs), prepare)
    return args, kwargs, leaves


def _sharing() -> Callable[[torch.Tensor], torch.Tensor]:
    """One tensor for all inputs of one shape and dtype."""
    first: dict[tuple[Any, ...], torch.Tensor] = {}
    return lambda tensor: first.setdefault((tensor.dtype, tuple(tensor.shape)), tensor)


def observe(
    source: Source,
    name: str,
    inputs: Sequence[str],
    scenario: Scenario,
    wrap: Callable[[Any], Any] = lambda made: made,
) -> list[Observation]:
    """Call `name` of a fresh module once for each of `inputs`, on one instance.

    What is called is `wrap(instance)`, for instance the compiled one; what is looked at is the instance.
    """
    _forget_loggers()
    snapshots = Snapshots()
    observations = []
    events = Events(source)
    with events.listening(), grad_mode(scenario.gradients):
        module = load(source)
        with installed(module):
            made = build(module, name, scenario)
            called = wrap(made)
            for number, expression in enumerate(inputs):
                seed(_SEED + number)
                args, kwargs, leaves = arguments(module, expression, scenario)
                events.take()
                with events.call(number):
                    observations.append(observed(called, made, args, kwargs, leaves, module, snapshots, events))
    return observations


def observed(
    called: Any,
    made: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: list[torch.Tensor],
    module: types.ModuleType,
    snapshots: Snapshots,
    events: Events,
) -> Observation:
    snapshots.of((args, kwargs))
    result = None
    try:
        result = called(*args, **kwargs)
    except Exception as error:  # any exception is an outcome
        outcome = ("raised", _exception(error))
    else:
        outcome = ("returned", snapshots.of(result))
    state = snapshots.of(made) if isinstance(made, nn.Module) else None
    return Observation(
        outcome=outcome,
        events=events.take(),
        inputs=snapshots.of((args, kwargs)),
        state=(("module", state), ("globals", snapshots.of(_globals(module)))),
        random=(torch.get_rng_state().numpy().tobytes(), random.getstate(), *_numpy_state()),
        gradients=_gradients(result, leaves, made),
    )


def _numpy_state() -> tuple[Any, ...]:
    name, keys, *rest = numpy.random.get_state(legacy=True)
    return (name, numpy.asarray(keys).tobytes(), *rest)


def grad_mode(gradients: str) -> contextlib.AbstractContextManager[Any]:
    if gradients == "off":
        return torch.no_grad()
    return torch.inference_mode() if gradients == "inference" else contextlib.nullcontext()


def _exception(error: BaseException | None) -> Any:
    if error is None:
        return None
    kind = type(error)
    text = str(error)
    if "in the TorchScript interpreter" in text:  # all before the last line are places in the source
        text = text.strip().rpartition("\n")[2]
    return (f"{kind.__module__}.{kind.__qualname__}", text, _exception(error.__cause__))


def _globals(module: types.ModuleType) -> dict[str, Any]:
    """What the module's own names hold: no functions and modules, and of its classes the plain attributes."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("sub_") and (value is None or type(value) is int):
            continue  # Dynamo leaves such a name behind for every function that it runs while it traces
        if isinstance(value, type) and value.__module__ == module.__name__:
            plain = {key: item for key, item in vars(value).items() if not _is_code(key, item)}
            found[name] = {key: plain[key] for key in sorted(plain)}
        elif not _is_code(name, value) and not isinstance(value, types.ModuleType):
            found[name] = value
    return dict(sorted(found.items()))


def _is_code(name: str, value: Any) -> bool:
    return name.startswith("__") or callable(value) or isinstance(value, staticmethod | classmethod | property)


def _tensors(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    mapped(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


def _gradients(result: Any, leaves: list[torch.Tensor], made: Any) -> Any:
    """The gradients of inputs and parameters for a fixed random cotangent; the sign of a zero is no difference."""
    numbered = [(number, tensor) for number, tensor in enumerate(_tensors(result)) if tensor.requires_grad]
    parameters = list(made.parameters()) if isinstance(made, nn.Module) else []
    wanted = [*leaves, *(parameter for parameter in parameters if parameter.requires_grad)]
    if not numbered or not wanted or not torch.is_grad_enabled():
        return None
    cotangents = [_cotangent(number, output) for number, output in numbered]
    outputs = [output for _, output in numbered]
    try:
        found = torch.autograd.grad(outputs, wanted, cotangents, allow_unused=True)
    except RuntimeError as error:
        return ("raised", _exception(error))
    return tuple(None if gradient is None else Snapshots(signed_zero=False).of(gradient) for gradient in found)


def _cotangent(number: int, output: torch.Tensor) -> torch.Tensor:
    """Random numbers that depend on the output's place alone."""
    generator = torch.Generator().manual_seed(_SEED + number)
    return torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)


def _forget_loggers() -> None:
    known = logging.Logger.manager.loggerDict
    for name in [name for name in known if name[: len(SUBJECT)] == SUBJECT and name.partition(".")[0] == SUBJECT]:
        del known[name]
    for method in vars(logging.Logger).values():
        if hasattr(method, "cache_clear"):
            method.cache_clear()


class Events(logging.Handler):
    """Collects log records, warnings and text on the standard streams, in order."""

    def __init__(self, source: Source) -> None:
        super().__init__(logging.NOTSET)
        self._source = source
        self._events: list[Event] = []

    def take(self) -> tuple[Event, ...]:
        """What came since the last time."""
        taken, self._events = tuple(self._events), []
        return taken

    def emit(self, record: logging.LogRecord) -> None:
        own = record.pathname == self._source.filename
        failed = record.exc_info[0] if record.exc_info else None
        what = ("log", record.name, record.levelname, record.getMessage(), record.funcName, failed)
        place = () if own else (record.pathname, record.lineno)
        self._events.append(Event((*what, *place), record.lineno if own else None))

    def _warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        own = filename == self._source.filename
        place = () if own else (filename, lineno)
        self._events.append(Event(("warning", category.__name__, str(message), *place), lineno if own else None))

    def _text(self, stream: str, text: str) -> None:
        if self._events and self._events[-1].what[0] == stream:
            text = self._events.pop().what[1] + text
        if text:
            self._events.append(Event((stream, text)))

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """The loggers of the module under test at every level, others at their own, and both streams."""
        root = logging.getLogger()
        root.addHandler(self)
        # Not the root's level: Dynamo writes its whole trace to loggers that inherit it. The logger is new, so nothing
        # has to be forgotten of it, for which `setLevel` goes through all loggers there are.
        logging.getLogger(SUBJECT).level = logging.DEBUG
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)  # else torch itself warns once a process: before, and not after
        out, err = _Stream(lambda text: self._text("stdout", text)), _Stream(lambda text: self._text("stderr", text))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                yield
        finally:
            root.removeHandler(self)
            torch.set_warn_always(always)

    @contextlib.contextmanager
    def call(self, number: int) -> Iterator[None]:
        """Warnings of one call: even calls show each place once, odd calls show every warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("default" if number % 2 == 0 else "always")
            warnings.showwarning = self._warning
            yield


class _Stream(io.TextIOBase):
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._write(text)
        return len(text)


@cache
def arguments_at(source: Source, line: int) -> frozenset[str]:
    """The arguments of every call that stands on `line`, as text."""
    return frozenset(
        ast.unparse(ast.Tuple([*node.args, *(word.value for word in node.keywords)], ast.Load()))
        for node in ast.walk(ast.parse(source.text))
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
    )
