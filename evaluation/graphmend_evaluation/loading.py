"""Get a model from its factory, with the code of one worktree, and pin its weights and inputs."""

from __future__ import annotations

import importlib
import random
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphmend_evaluation import names
from graphmend_evaluation.compare import Leaves, take_apart
from graphmend_evaluation.counting import Call, first_line
from graphmend_evaluation.worktree import LoadError, check_origin

SEED = 20240607


@dataclass(frozen=True)
class Model:
    """What a factory returned: something to call, its calls, and the modes it asked for."""

    target: Callable[..., Any]
    calls: tuple[Call, ...]
    gradients: bool

    @property
    def module(self) -> torch.nn.Module | None:
        """The target, if it is a module."""
        return self.target if isinstance(self.target, torch.nn.Module) else None


@dataclass(frozen=True)
class Factory:
    """A function of the repository, or about it, that makes a model."""

    root: Path
    name: str
    function: Callable[[], Any]

    def make(self) -> Model:
        """A new model, made from the same random numbers every time.

        Raises `LoadError` when the factory raises, returns something else than it should, or used other code than
        the worktree's.
        """
        seed()
        try:
            made = self.function()
        except SystemExit as error:
            raise LoadError(f"{self.name} called sys.exit({error.code!r})") from error
        except Exception as error:  # the factory is the user's code and may raise anything
            raise LoadError(f"{self.name} raised {describe(error, self.root)}") from error
        check_origin(self.root, self.name)
        return _model(made, self.name)


def seed() -> None:
    """Start every source of random numbers anew."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(SEED % 2**32)


def load_factory(root: Path, name: str) -> Factory:
    """Import `package.module:factory`, or make a factory for a name with a scheme; see `names`.

    Raises `LoadError` when it is not written so, cannot be imported or is not callable.
    """
    parsed = names.parse(name)
    if parsed is not None:
        return Factory(root, name, _from_source(root, name, parsed))
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise LoadError(f"{name!r} is not package.module:factory")
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except SystemExit as error:
        raise LoadError(f"importing {module_name} called sys.exit({error.code!r})") from error
    except Exception as error:  # importing runs the user's code, which may raise anything
        raise LoadError(f"{name} cannot be imported: {describe(error, root)}") from error
    if not callable(found):
        raise LoadError(f"{name} is no factory: a {type(found).__name__} cannot be called")
    return Factory(root, name, found)


def _from_source(
    root: Path, name: str, parsed: names.SmallModel | names.RecordedModel | names.HubModel
) -> Callable[[], Any]:
    try:
        if isinstance(parsed, names.SmallModel):
            from graphmend_evaluation.huggingface.tiny import named_model

            return named_model(parsed)
        if isinstance(parsed, names.RecordedModel):
            from graphmend_evaluation.recording.replay import recorded_model

            return recorded_model(parsed)
        from graphmend_evaluation.huggingface.hub import hub_model

        return hub_model(parsed)
    except LoadError:
        raise
    except SystemExit as error:
        raise LoadError(f"{name} called sys.exit({error.code!r})") from error
    except Exception as error:  # importing runs the user's code, which may raise anything
        raise LoadError(f"{name} cannot be imported: {describe(error, root)}") from error


def save_pins(model: Model, folder: Path) -> None:
    """Save weights and inputs for every later run of this model."""
    torch.save({} if model.module is None else model.module.state_dict(), folder / "state.pt")
    torch.save(_inputs(model).tensors, folder / "inputs.pt")


def load_pins(model: Model, folder: Path) -> None:
    """Give `model` the weights and inputs that were saved.

    Raises `LoadError` when they do not fit: names, shapes and dtypes must be the same.
    """
    try:
        state = torch.load(folder / "state.pt", weights_only=True)
        if model.module is not None:
            model.module.load_state_dict(state, strict=True)
    except (RuntimeError, OSError, ValueError) as error:
        raise LoadError(f"the weights of the first arm do not fit: {first_line(str(error))}") from error
    saved = torch.load(folder / "inputs.pt", weights_only=True)
    inputs = _inputs(model).tensors
    if {path: (t.dtype, t.shape) for path, t in saved.items()} != {p: (t.dtype, t.shape) for p, t in inputs.items()}:
        raise LoadError("the factory makes other inputs than in the first arm: structure, dtypes or shapes differ")
    with torch.no_grad():
        for path, tensor in inputs.items():
            if not torch.equal(tensor, saved[path]):
                tensor.copy_(saved[path])


def describe(error: BaseException, root: Path) -> str:
    """One line: type, message, and the innermost place in the repository."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    where = f" ({Path(frames[-1].filename).relative_to(root).as_posix()}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {first_line(str(error))}{where}"


def _inputs(model: Model) -> Leaves:
    return take_apart([(call.args, dict(call.kwargs or {})) for call in model.calls])


def _model(made: Any, name: str) -> Model:
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise LoadError(f"{name} must return (module, inputs) or (module, inputs, options), not {type(made).__name__}")
    target, inputs = made[0], made[1]
    options = dict(made[2]) if len(made) == 3 else {}
    unknown = sorted(set(options) - {"train", "gradients"})
    if unknown:
        raise LoadError(f"{name} returns unknown options {', '.join(unknown)}; known are train and gradients")
    if not callable(target):
        raise LoadError(f"{name} returns a {type(target).__name__}, which cannot be called")
    if isinstance(target, torch.nn.Module) and "train" in options:
        target.train(bool(options["train"]))
    calls = tuple(_call(each, name) for each in (inputs if isinstance(inputs, list) else [inputs]))
    if not calls:
        raise LoadError(f"{name} returns no inputs")
    return Model(target, calls, bool(options.get("gradients", False)))


def _call(inputs: Any, name: str) -> Call:
    if isinstance(inputs, Call):
        return inputs
    if isinstance(inputs, torch.Tensor):
        return Call((inputs,))
    if isinstance(inputs, tuple):
        return Call(inputs)
    if isinstance(inputs, Mapping) and all(isinstance(key, str) for key in inputs):
        return Call(kwargs=dict(inputs))
    raise LoadError(
        f"{name} returns inputs of type {type(inputs).__name__}: a tuple of arguments, a dict of keyword arguments or "
        "a list of those is needed"
    )
