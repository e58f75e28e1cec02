"""A case on disk: fixed as a project, and run with everything written down that somebody outside could see."""

from __future__ import annotations

import ast
import contextlib
import logging
import os
import random
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.rewriting.concrete import verify_concrete
from tests.adversarial.case import Case
from tests.tools import observe
from tests.tools.observe import Event, Observation, Scenario
from tests.tools.snapshot import Snapshots
from tests.tools.subject import VARIANTS, Source, Transform, evaluate, mapped, parameter_dtype

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the first derivative ahead in a process scripts functions, of which torch warns
    torch.autograd.forward_ad._maybe_load_decompositions()  # type: ignore[no-untyped-call]

Wrap = Callable[[Any], Any]

_OWN_VARIANTS: Mapping[str, Transform] = {
    **VARIANTS,
    "uint8": lambda tensor: tensor.nan_to_num().abs().to(torch.uint8) if tensor.is_floating_point() else tensor,
    "complex64": lambda tensor: tensor.to(torch.complex64) if tensor.is_floating_point() else tensor,
    "column": lambda tensor: tensor[..., :1] if tensor.dim() > 1 else tensor,
}

_VARIED = ("one nan", "empty", "float16", "int64", "uint8", "complex64", "expanded")

_LIBRARIES = frozenset(name.partition(".")[0] for name in sys.modules)


@dataclass(frozen=True)
class Fixed:
    """The files of a case after `graphmend fix`, with what it said."""

    files: Mapping[str, str]
    applied: Counter[str]
    reasons: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        """The rules that changed something."""
        return tuple(sorted(self.applied))


def write(files: Mapping[str, str], folder: Path) -> None:
    """The project on disk."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def fix(files: Mapping[str, str], folder: Path, *, opaque: bool = False) -> Fixed:
    """Write the files into an empty folder and run `graphmend fix` there with default settings, or with `--opaque`."""
    write(files, folder)
    settings = Settings(root=folder, opaque=opaque)
    result = api.fix([folder], settings, write=True, cache=False, proof=verify_concrete)
    after = {path: (folder / path).read_bytes().decode() for path in files}
    return Fixed(
        files=after,
        applied=Counter(finding.code for change in result.fixes for finding in change.applied),
        reasons=tuple(f"{found.code} {found.declined}" for found in result.remaining if found.declined is not None),
        problems=tuple(str(problem) for problem in result.problems),
    )


def eager_scenarios(case: Case) -> list[Scenario]:
    """How a case is called in eager mode."""
    found = []
    for training in case.training:
        found += [Scenario(training, "off"), Scenario(training, "inner")]
    if case.varied:
        found += [Scenario(case.training[0], "parameters", variant) for variant in _VARIED]
    return found


def compiled_scenarios(case: Case) -> list[Scenario]:
    """How a case is called when it is compiled: without gradients, and with them."""
    return [Scenario(case.training[0], "off"), Scenario(case.training[-1], "inner")]


def observed(case: Case, folder: Path, scenario: Scenario, wrap: Wrap = lambda made: made) -> list[Observation]:
    """What each call of the project in `folder` does, on one instance."""
    snapshots = Snapshots()
    events = _Events(folder)
    found: list[Observation] = []
    with events.listening(), observe.grad_mode(scenario.gradients), _project(folder):
        observe.seed()
        names: dict[str, Any] = {"torch": torch, "nn": nn}
        exec(compile(case.outside, "outside.py", "exec", dont_inherit=True), names)
        made = names["make"]()
        if isinstance(made, nn.Module):
            made.train(scenario.training)
            dtype = parameter_dtype(scenario.variant)
            if dtype is not None:
                made.to(dtype)
        main = sys.modules.get(case.main) or types.ModuleType(case.main)
        called = wrap(made)
        for number, expression in enumerate(case.inputs):
            observe.seed(number)
            args, kwargs, leaves = _arguments(main, expression, scenario)
            events.take()
            with events.call(number):
                found.append(observe.observed(called, made, args, kwargs, leaves, main, snapshots, events))
    return found


def scripted(case: Case, folder: Path) -> tuple[Any, ...]:
    """What `torch.jit.script` makes of the module: an error's type, or the results of the first calls."""
    with _project(folder), contextlib.redirect_stderr(None), contextlib.redirect_stdout(None):
        observe.seed()
        names: dict[str, Any] = {"torch": torch, "nn": nn}
        exec(compile(case.outside, "outside.py", "exec", dont_inherit=True), names)
        try:
            made = names["make"]()
            if not isinstance(made, nn.Module):
                return ("no module",)
            module = torch.jit.script(made.eval())
        except Exception as error:  # whatever TorchScript says, it must say it before and after
            return ("not scripted", type(error).__name__)
        results: list[Any] = ["scripted"]
        main = sys.modules[case.main]
        for expression in case.inputs:
            args, kwargs, _ = _arguments(main, expression, Scenario())
            try:
                results.append(Snapshots().of(module(*args, **kwargs)))
            except Exception as error:  # an exception is a result
                results.append(("raised", type(error).__name__))
        return tuple(results)


def exported(case: Case, folder: Path) -> tuple[Any, ...]:
    """What `torch.export` makes of the module and the first call: an error's type, or the result of that call."""
    with _project(folder), contextlib.redirect_stderr(None), contextlib.redirect_stdout(None), torch.no_grad():
        observe.seed()
        names: dict[str, Any] = {"torch": torch, "nn": nn}
        exec(compile(case.outside, "outside.py", "exec", dont_inherit=True), names)
        try:
            made = names["make"]()
            if not isinstance(made, nn.Module):
                return ("no module",)
            args, kwargs, _ = _arguments(sys.modules[case.main], case.inputs[0], Scenario())
            program = torch.export.export(made.eval(), args, kwargs)
        except Exception as error:  # whatever the exporter says, it must say it before and after
            return ("not exported", type(error).__name__)
        observe.seed()
        try:
            return ("exported", Snapshots().of(program.module()(*args, **kwargs)))
        except Exception as error:  # an exception is a result
            return ("exported", ("raised", type(error).__name__))


def _arguments(
    main: types.ModuleType, expression: str, scenario: Scenario
) -> tuple[tuple[Any, ...], dict[str, Any], list[torch.Tensor]]:
    variant, _, rest = expression.rpartition("@ ")
    args, kwargs = mapped(evaluate(rest, main), _OWN_VARIANTS[scenario.variant])
    if variant:
        args, kwargs = mapped((args, kwargs), _OWN_VARIANTS[variant])
    leaves: list[torch.Tensor] = []

    def prepare(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.layout is not torch.strided:
            return tensor
        leaf = tensor.detach().requires_grad_()
        leaves.append(leaf)
        return leaf if scenario.gradients == "leaves" else leaf.view_as(leaf) * 1

    if scenario.gradients in {"leaves", "inner"}:
        args, kwargs = mapped((args, kwargs), prepare)
    return args, kwargs, leaves


@contextlib.contextmanager
def _project(folder: Path) -> Iterator[None]:
    """The folder is where Python looks first and where one works; modules that were loaded are forgotten after."""
    before, place = set(sys.modules), os.getcwd()
    random.seed(0)
    sys.path.insert(0, str(folder))
    sys.path_importer_cache.pop(str(folder), None)
    os.chdir(folder)
    loggers = set(logging.Logger.manager.loggerDict)
    try:
        yield
    finally:
        module_hooks._global_forward_hooks.clear()
        torch.set_grad_enabled(True)
        os.chdir(place)
        sys.path.remove(str(folder))
        sys.path_importer_cache.pop(str(folder), None)
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]
        for name in set(logging.Logger.manager.loggerDict) - loggers:
            logging.Logger.manager.loggerDict.pop(name, None)


class _Events(observe.Events):
    """Records and warnings of all files of a project: places are text, as line numbers move."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Source("", ""))
        self._folder = folder

    def emit(self, record: logging.LogRecord) -> None:
        failed = record.exc_info[0] if record.exc_info else None
        if record.name.startswith("torch._dynamo") or record.name.startswith("torch.fx"):
            return
        place = self._place(record.pathname, record.lineno)
        self._events.append(
            Event(("log", record.name, record.levelname, record.getMessage(), record.funcName, failed, place))
        )

    def _warning(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        if str(message).startswith(("Error detected in ", "Dynamo does not know")):
            return  # with the name of a frame that Dynamo made, or of what it met
        self._events.append(Event(("warning", category.__name__, str(message), self._place(filename, lineno))))

    def _place(self, path: str, line: int) -> Any:
        """The arguments of the calls at this place of the project's, or a line elsewhere."""
        try:
            inside = Path(self._folder, path).relative_to(self._folder)
        except ValueError:
            return (path, line)
        if inside.name.startswith("<"):
            return ("<a compiler>", 0)  # made its code, and counts it
        text = (self._folder / inside).read_text(encoding="utf-8-sig")
        return (inside.as_posix(), *sorted(_arguments_at(text, line) - {"()"}))


def _arguments_at(text: str, line: int) -> set[str]:
    return {
        ast.unparse(ast.Tuple([*node.args, *(word.value for word in node.keywords)], ast.Load()))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
    }


def without_folder(value: Any, folder: Path) -> Any:
    """The observation with the project's place taken out of its texts."""
    if isinstance(value, str):
        return value.replace(str(folder), "<project>")
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(without_folder(item, folder) for item in value)
    return value


def neutral(observations: Sequence[Observation], folder: Path) -> list[Observation]:
    """Observations that can be compared with those of the same project elsewhere."""
    return [
        Observation(
            outcome=without_folder(one.outcome, folder),
            events=tuple(Event(without_folder(event.what, folder)) for event in one.events),
            inputs=one.inputs,
            state=without_folder(one.state, folder),
            random=one.random,
            gradients=without_folder(one.gradients, folder),
        )
        for one in observations
    ]
