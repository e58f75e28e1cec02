"""Record what functions hold from statement to statement while a program runs without torch.compile.

Loaded by its path into the user's process, like `recorder`, and like it on the standard library alone. Sizes, dtypes,
classes, numbers, flags and words that may name an option are kept, and whether memory was written or is shared; no
values of tensors, no other text.
"""

from __future__ import annotations

import ast
import atexit
import collections
import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any

_CALLS_KEPT, _EVENTS_KEPT = 6, 300
_DEEPEST, _LONGEST = 3, 24
_MODULES_LOOKED_AT = 300
_READ_ALL = 2**18
_UNCHANGING = (type(None), bool, int, float, str)
_OPTION = re.compile(r"(?=.{1,24}$)[A-Za-z][A-Za-z_-]*\d{0,3}[A-Za-z_-]*")
_AUTOGRAD = os.path.join("torch", "autograd", "__init__.py")

Tracer = Callable[[FrameType, str, Any], Any]


def key_of(statement: ast.stmt) -> str:
    """What a statement is known by, wherever it stands and whichever Python reads it: `ast.dump` writes empty fields
    in some versions. `recorded/moments.py` has the same function, as neither may import the other."""

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(each) for each in node]
        if not isinstance(node, ast.AST):
            return node
        fields = [(name, plain(each)) for name, each in ast.iter_fields(node) if each is not None and each != []]
        return [type(node).__name__, fields]

    return hashlib.sha256(repr(plain(statement)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Function:
    """One function that is watched: its statements, and what its calls held."""

    differentiated = 0  # how often the program asked autograd for gradients

    def __init__(self, path: str, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> None:
        self.path, self.name = path, name
        self.broken: set[int] = set()
        self.called: set[int] = set()
        self.first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        self.statements = [
            (key_of(each), each.lineno, each.end_lineno or each.lineno)
            for each in ast.walk(node)
            if isinstance(each, ast.stmt) and each is not node
        ]
        given = [*node.args.posonlyargs, *node.args.args]
        self.owner = given[0].arg if given else ""
        chains = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        self.chains = sorted(each for each in chains if re.fullmatch(rf"{self.owner}(\.\w+)+", each))
        self.facts: dict[str, int] = {}
        self._states: dict[Any, int] = {}
        self._lasting: dict[int, tuple[Any, int]] = {}
        self._counter = itertools.count()
        self.calls: list[list[Any]] = []
        self.entered = 0
        self.folder: str | None = None

    def number(self, fact: Any) -> int:
        """The number of a fact, the same one for equal facts."""
        return self.facts.setdefault(json.dumps(fact), len(self.facts))

    def lasting(self, value: Any) -> int:
        """The number of an object in all calls, without keeping it; -1 for what knows no weak references."""
        known = self._lasting.get(id(value))
        if (known is None or known[0]() is not value) and type(value).__weakrefoffset__:
            known = self._lasting[id(value)] = weakref.ref(value), next(self._counter)
        return known[1] if known is not None else -1

    def state(self, owner: Any) -> list[int]:
        """Numbers of an instance, of its attributes and buffers, and of its parameters, in all calls."""
        own, trained = _state(owner)
        keys = ("owner", id(owner)), ("own", id(owner), own), ("trained", id(owner), trained)
        return [self._states.setdefault(key, len(self._states)) for key in keys]

    def ended(self, call: list[Any]) -> None:
        self.calls.append(call)
        with contextlib.suppress(OSError):
            if self.folder is not None:
                with open(os.path.join(self.folder, f"{os.getpid()}.calls"), "a", encoding="utf-8") as file:
                    file.write(json.dumps(self.record()) + "\n")

    def forked(self) -> None:
        self.calls, self.entered = [], 0  # calls before are the parent's

    def record(self) -> dict[str, Any]:
        """All of it, as the trace has it."""
        return {
            "e": "calls",
            "path": self.path,
            "line": self.first,
            "function": self.name,
            "broken": sorted(self.broken),
            "called": sorted(self.called),
            "statements": self.statements,
            "facts": list(self.facts),
            "calls": [json.dumps(each) for each in self.calls],
        }


class Watcher:
    """Follows the functions around some lines of files, by `sys.settrace`. `broken` lines broke graphs, and `called`
    ones led to others."""

    def __init__(self, places: Mapping[str, Mapping[str, Iterable[int]]]) -> None:
        self._functions: dict[tuple[str, int, str], _Function] = {}
        for path, lines in places.items():
            for function in _functions(path, lines):
                self._functions[os.path.realpath(path), function.first, function.name.rpartition(".")[2]] = function
        self._known: dict[CodeType, _Function | None] = {}
        self._before: Any = None

    def start(self) -> None:
        """Follow what is called from now on."""
        self._before = sys.gettrace()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def stop(self) -> None:
        """Follow nothing more."""
        sys.settrace(self._before)
        threading.settrace(self._before)

    def write_to(self, folder: str) -> None:
        """Write what is known of a function at the end of each call, to a file of each process below `folder`: one
        that `os._exit` or a signal ends leaves what it had, and a forked one begins anew."""
        for function in self._functions.values():
            function.folder = folder
            getattr(os, "register_at_fork", dict)(after_in_child=function.forked)  # Windows has none
        atexit.register(self.stop)

    def records(self) -> Iterator[dict[str, Any]]:
        """What is known of each function that was called."""
        yield from (each.record() for each in self._functions.values() if each.calls)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Tracer | None:
        code = frame.f_code
        if code.co_name in ("grad", "backward") and code.co_filename.endswith(_AUTOGRAD):
            _Function.differentiated += 1
        if code not in self._known:
            path = os.path.realpath(code.co_filename)
            self._known[code] = self._functions.get((path, code.co_firstlineno, code.co_name))
        function = self._known[code]
        if function is None or function.entered >= _CALLS_KEPT:
            return None
        function.entered += 1
        frame.f_trace_opcodes = False
        return _Call(function).event


class _Call:
    """One call of a function. Objects and memory are told apart by small numbers."""

    def __init__(self, function: _Function) -> None:
        self._function = function
        self._events: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._kept: list[Any] = []  # so that no two objects of this call have one identity
        self._arguments: dict[str, Any] | None = None  # as the call began: a name may hold another object later

    def event(self, frame: FrameType, event: str, argument: Any) -> Tracer | None:
        """A line that is about to run, or the end."""
        if event in ("line", "return") and len(self._events) < _EVENTS_KEPT:
            try:
                self._note(frame, event, argument)
            except Exception:  # a class that answers in its own way costs the rest of the call
                self._events.append(["lost"])
                return None
        elif event == "exception":
            self._events.append(["raised"])
        if event == "return":
            self._function.ended(self._events)
        return self.event

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        held = dict(frame.f_locals)
        if self._arguments is None:
            self._arguments = dict(held)
        owner = held.get(self._function.owner)
        for chain in self._function.chains:
            with contextlib.suppress(KeyError, TypeError):
                held[chain] = _attribute(owner, chain.split(".")[1:])
        facts = {name: self._fact_number(value) for name, value in held.items() if not name.startswith("@")}
        for name in frame.f_code.co_names:
            value = frame.f_globals.get(name)
            kept = hasattr(value, "__dict__") or _drawn(value)
            if kept and not isinstance(value, (type, ModuleType)) and not callable(value):
                facts[f"global {name}"] = self._fact_number(value)
        facts["@autograd"] = self._function.number(["autograd", _Function.differentiated])
        facts["@autocast"] = self._function.number(_autocast())
        facts["@random"] = self._function.number(self._random())
        for name, value in self._arguments.items():
            if held.get(name) is not value and type(value) not in _UNCHANGING:
                facts[f"@argument {name}"] = self._fact_number(value)
        owner = self._arguments.get(self._function.owner)
        if owner is not None:
            facts["@owner"] = self._function.number(["state", *self._function.state(owner)])
        grad = "torch" in sys.modules and sys.modules["torch"].is_grad_enabled()
        if event == "return":
            facts["@result"] = self._fact_number(argument)
        self._events.append([frame.f_lineno if event == "line" else 0, int(grad), facts])

    def _fact_number(self, value: Any) -> int:
        return self._function.number(self._fact(value, 0))

    def _number(self, kind: str, what: Any) -> int:
        return self._numbers.setdefault((kind, what), len(self._numbers))

    def _identity(self, value: Any) -> int:
        self._kept.append(value)
        return self._number("object", id(value))

    def _random(self) -> list[Any]:
        torch, numpy, plain = sys.modules.get("torch"), sys.modules.get("numpy"), sys.modules.get("random")
        states = [
            hash(torch.random.get_rng_state().numpy().tobytes()) if torch is not None else 0,
            hash(str(numpy.random.get_state()[1:])) if numpy is not None else 0,
            hash(plain.getstate()) if plain is not None else 0,
        ]
        return ["random", *(self._number(f"random {place}", each) for place, each in enumerate(states))]

    def _fact(self, value: Any, deep: int) -> list[Any]:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(value)
        if numpy is not None and isinstance(value, numpy.ndarray):
            root = value
            while isinstance(root.base, numpy.ndarray):
                root = root.base
            memory = root.__array_interface__["data"][0]
            content = hash(value.tobytes()) if value.size <= _READ_ALL else 0
            numbers = self._number("memory", memory), self._identity(value), self._number("content", content)
            return ["array", str(value.dtype), list(value.shape), *numbers]
        if value is None or isinstance(value, bool):
            return ["constant", value]
        if type(value) is int:
            return ["int", value]
        if torch is not None and isinstance(value, (torch.dtype, torch.device)):
            return [type(value).__name__, str(value).removeprefix("torch.")]
        if type(value) is float:
            return ["float", repr(value)]
        if type(value) is str:
            return ["str", value] if _OPTION.fullmatch(value) else ["str"]
        if type(value).__name__ == "Size" and torch is not None and isinstance(value, torch.Size):
            return ["tuple", [["int", int(each)] for each in value], 0]
        if type(value) in (list, tuple) and len(value) <= _LONGEST and deep < _DEEPEST:
            inner = [self._fact(each, deep + 1) for each in value]
            return [type(value).__name__, inner, self._identity(value) if type(value) is list else 0]
        kind = type(value)
        held = list(value.parameters()) if torch is not None and isinstance(value, torch.nn.Module) else []
        trained = sum(each.numel() for each in held) if any(each.requires_grad for each in held) else 0
        state = self._number("state", (_state(value), _drawn(value)))
        name, filled = f"{kind.__module__}.{kind.__qualname__}", bool(getattr(value, "__dict__", None))
        mode = bool(value.training) if torch is not None and isinstance(value, torch.nn.Module) else None
        lasting = self._function.lasting(value)
        found = ["object", name, self._identity(value), callable(value), trained, state, filled, mode, lasting]
        return [*found, len(value)] if type(value) is dict else found

    def _tensor(self, value: Any) -> list[Any]:
        torch = sys.modules["torch"]
        plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided
        try:
            memory = self._number("memory", value.untyped_storage().data_ptr()) if value.numel() else -1
        except (RuntimeError, NotImplementedError):
            memory, plain = -1, False
        kind, dtype = "tensor" if plain else "other tensor", str(value.dtype).removeprefix("torch.")
        sizes, numbers = [int(each) for each in value.shape], (memory, self._identity(value))
        version, grad = self._number("content", _content(value)), bool(value.requires_grad)
        return [kind, dtype, sizes, value.device.type, grad, *numbers, version]


def _content(value: Any) -> tuple[int, int]:
    """What changes when a tensor is written, also where its version does not, as through `.data`."""
    version = -1 if value.is_inference() else value._version
    try:
        if value.numel() > _READ_ALL or value.device.type == "meta":
            return version, 0
        flat = value.detach().cpu().contiguous().reshape(-1)
        return version, hash(flat.view(sys.modules["torch"].uint8).numpy().tobytes())
    except (RuntimeError, NotImplementedError, TypeError):
        return version, 0


def _attribute(owner: Any, names: list[str]) -> Any:
    """What an object holds, without asking properties. KeyError where it holds nothing of the name."""
    for name in names:
        held = object.__getattribute__(owner, "__dict__")
        groups = [held, *(held.get(kind) or {} for kind in ("_parameters", "_buffers", "_modules"))]
        owner = next(group for group in [*groups, None] if group is None or name in group)[name]  # type: ignore[index]
    return owner


def _state(owner: Any) -> tuple[Any, Any]:
    """What changes when an object, or a module in it, is given another attribute or writes a buffer; and what changes
    when a parameter is written."""
    torch = sys.modules.get("torch")
    held = _attributes(owner)
    if torch is None or not isinstance(owner, torch.nn.Module):
        return tuple(_plain_state(held)), ()
    own: list[Any] = []
    trained: list[Any] = []
    for number, module in enumerate(owner.modules()):
        if number < _MODULES_LOOKED_AT:
            own += _plain_state(vars(module))
            own += [(name, id(each), _content(each)) for name, each in module._buffers.items() if each is not None]
            trained += [(id(each), _content(each)) for each in module._parameters.values() if each is not None]
    return tuple(own), tuple(trained)


def _attributes(owner: Any) -> dict[Any, Any]:
    """What an object holds: its attributes, those in slots included, or the items of a container."""
    if isinstance(owner, (list, tuple, set, frozenset, collections.deque)):
        return dict(enumerate(owner))
    found = dict(owner) if isinstance(owner, dict) else {}
    for kind in type(owner).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            with contextlib.suppress(AttributeError):
                found[name] = object.__getattribute__(owner, name)
    with contextlib.suppress(AttributeError):
        found.update(object.__getattribute__(owner, "__dict__"))
    return found


def _plain_state(held: Mapping[Any, Any]) -> Iterator[tuple[Any, ...]]:
    for name, value in held.items():
        if name not in ("_parameters", "_buffers", "_modules", "training"):
            size = len(value) if isinstance(value, (list, dict, set)) else 0
            yield name, id(value), size, _content(value) if type(value).__name__ == "Tensor" else _drawn(value)


def _autocast() -> list[Any]:
    """The kinds of device on which autocast is on, with its dtype there."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ["autocast", []]
    on = [each for each in ("cpu", "cuda") if torch.is_autocast_enabled(each)]
    return ["autocast", [(each, str(torch.get_autocast_dtype(each))) for each in on]]


def _drawn(value: Any) -> int:
    """What changes when an own generator draws random numbers; 0 for anything else."""
    kind = type(value)
    if not isinstance(value, random.Random) and kind.__name__ not in ("Generator", "RandomState"):
        return 0
    if kind.__module__.startswith("torch"):
        return hash(value.get_state().numpy().tobytes())
    state = getattr(getattr(value, "bit_generator", None), "state", None)
    found = getattr(value, "getstate", None) or getattr(value, "get_state", None)
    return hash(str(state)) if state is not None else hash(str(found())) if found is not None else 0


def _functions(path: str, lines: Mapping[str, Iterable[int]]) -> Iterator[_Function]:
    """The innermost functions of a file around some lines."""
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    found: list[tuple[int, int, str, Any]] = []
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{prefix}{child.name}."
                if not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno, inner[:-1], child))
            waiting.append((child, inner))
    around: dict[int, _Function] = {}
    for kind in ("broken", "called"):
        for line in lines[kind]:
            holding = [each for each in found if each[0] <= line <= each[1]]
            if holding:
                first, _, name, node = max(holding, key=lambda each: each[0])
                function = around.get(first) or around.setdefault(first, _Function(path, node, name))
                getattr(function, kind).add(line)
    yield from around.values()
