"""A small model of a class of the transformers package: what `huggingface:package.module:Class` names.

Recipes and input plans are tried, each in a fork of this process, until the model can be made and called. The fork
leaves nothing behind: messages that are shown once are not yet shown when the measurement begins.
"""

from __future__ import annotations

import importlib
import os
import pickle
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from graphmend_evaluation.huggingface import inputs
from graphmend_evaluation.huggingface.decoding import Generation, one_step, prompt
from graphmend_evaluation.huggingface.facts import RECIPES, Recipe
from graphmend_evaluation.huggingface.inputs import NoInput, Plan
from graphmend_evaluation.huggingface.shrink import CannotShrink, shrunk, sub_configs
from graphmend_evaluation.names import SmallModel
from graphmend_evaluation.worktree import LoadError

TRIAL_SECONDS = 20
ALL_SECONDS = 45.0
MOST_PARAMETERS = 300_000_000
_TOKENS = re.compile(r"tokens:?\s*(?:is\s*)?(\d+)\D+?features:?\s*(?:is\s*)?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Choice:
    """What worked: `calls` are the numbers of the calls that can be made, `labels` what they get in training mode."""

    recipe: Recipe
    plan: Plan
    calls: tuple[int, ...]
    labels: str = "none"


@dataclass(frozen=True)
class _Trial:
    """How one attempt ended. `error` is empty when at least the first call returned."""

    error: str
    calls: tuple[int, ...] = ()
    built: bool = False


@dataclass(frozen=True)
class TinyModel:
    """A factory: calling it makes the model and its calls, the same each time.

    With `train` the model is in training mode, has gradients and gets labels where it takes them. With `decode` it
    decodes with a static cache: `generate` as a whole, or the forward of one `step`.
    """

    model_class: type[Any]
    dtype: torch.dtype | None
    choice: Choice
    train: bool = False
    decode: str | None = None

    def __call__(self) -> tuple[torch.nn.Module, list[dict[str, Any]], dict[str, bool]]:
        model, found = build(self.model_class, self.choice.recipe, self.choice.plan, self.dtype)
        chosen = [found[number] for number in self.choice.calls]
        if self.decode is not None:
            inputs_of_generate = prompt(chosen[0])
            if self.decode == "generate":
                return Generation(model), [inputs_of_generate], {}
            return model, [one_step(model, inputs_of_generate)], {}
        if not self.train:
            return model, chosen, {}
        chosen = [inputs.labelled(model, call, self.choice.labels) for call in chosen]
        return model, chosen, {"train": True, "gradients": True}


def in_training(factory: TinyModel) -> TinyModel:
    """The same model as it is trained, with the first kind of labels that it takes.

    Raises `LoadError` when it cannot be called in training mode even without.
    """
    error = ""
    for kind in inputs.LABELS:
        trained = replace(factory, choice=replace(factory.choice, labels=kind), train=True)
        trial = _forked(lambda made=trained: _try_training(made))  # type: ignore[misc]
        if not trial.error:
            return trained
        error = trial.error
    raise LoadError(f"{factory.model_class.__name__} cannot be called in training mode: {error}")


def decoding(factory: TinyModel, decode: str) -> TinyModel:
    """The same model as it decodes: `generate` as a whole, or the forward of one `step`.

    Raises `LoadError` when it does not decode with a static cache, or not from the inputs that its forward takes.
    """
    decoder = replace(factory, decode=decode)
    trial = _forked(lambda: _try_decoding(decoder))
    if trial.error:
        raise LoadError(f"{factory.model_class.__name__} does not decode with a static cache: {trial.error}")
    return decoder


def _try_decoding(factory: TinyModel) -> _Trial:
    from graphmend_evaluation.loading import seed

    seed()
    try:
        model, found, _ = factory()
        with torch.no_grad():
            model(**found[0])
    except Exception as error:  # `generate` may raise anything for inputs that it does not expect
        return _Trial(f"{type(error).__name__}: {_one_line(str(error))}", built=True)
    return _Trial("", built=True)


def _try_training(factory: TinyModel) -> _Trial:
    from graphmend_evaluation.loading import seed

    seed()
    try:
        model, found, _ = factory()
        model.train()
        for call in found:
            model(**call)
    except Exception as error:  # forward may raise anything for labels that it does not expect
        return _Trial(f"{type(error).__name__}: {_one_line(str(error))}", built=True)
    return _Trial("", built=True)


def named_model(name: SmallModel) -> TinyModel:
    """The factory for a name. Raises `LoadError` as `load_class` and `tiny_model` do."""
    dtype = None if name.dtype is None else dtype_named(name.dtype)
    return tiny_model(load_class(name.module, name.name), dtype)


def tiny_model(model_class: type[Any], dtype: torch.dtype | None = None) -> TinyModel:
    """Find out how a small instance of `model_class` can be made and called.

    Raises `LoadError` with the reason of the attempt that came furthest when none works.
    """
    furthest = _Trial("no recipe could be tried")
    ends = time.monotonic() + ALL_SECONDS
    hopeless: Recipe | None = None
    for recipe, plan in _attempts(model_class):
        if recipe is hopeless:
            continue
        if time.monotonic() > ends:
            break
        trial = _in_fork(model_class, recipe, plan, dtype)
        if not trial.error:
            return TinyModel(model_class, dtype, Choice(recipe, plan, trial.calls))
        if not trial.built:
            hopeless = recipe
        if trial.built or not furthest.built:
            furthest = trial
        repaired = _repaired(model_class, recipe, plan, trial.error)
        if repaired is not None:
            again = _in_fork(model_class, recipe, repaired, dtype)
            if not again.error:
                return TinyModel(model_class, dtype, Choice(recipe, repaired, again.calls))
    raise LoadError(f"no small {model_class.__name__} could be made and called: {furthest.error}")


def build(
    model_class: type[Any], recipe: Recipe, plan: Plan, dtype: torch.dtype | None
) -> tuple[torch.nn.Module, list[dict[str, Any]]]:
    """The model in evaluation mode, and its calls. Raises whatever its code raises."""
    config = shrunk(model_class.config_class, recipe)
    if recipe.widths is None:
        _check_size(model_class, config)
    model = model_class(config).eval()
    found = inputs.calls(model, plan)
    if dtype is not None:
        model = model.to(dtype)
        found = inputs.cast(found, dtype)
    return model, found


def _check_size(model_class: type[Any], config: Any) -> None:
    """Raises `CannotShrink` for a model that nobody would call small; its parameters take no memory here."""
    with torch.device("meta"):
        parameters = sum(each.numel() for each in model_class(config).parameters())
    if parameters > MOST_PARAMETERS:
        raise CannotShrink(f"{model_class.__name__} has {parameters / 1e6:.0f} million parameters at its least")


def load_class(module_name: str, name: str) -> type[Any]:
    """The class, which must know the class of its configuration.

    Raises `LoadError` when there is no such class. Lets through what importing the module raises.
    """
    found = getattr(importlib.import_module(module_name), name, None)
    if not isinstance(found, type) or not issubclass(found, torch.nn.Module):
        raise LoadError(f"{module_name} has no module class {name}")
    if getattr(found, "config_class", None) is None:
        raise LoadError(f"{name} names no config_class, from which a small one could be made")
    return found


def _attempts(model_class: type[Any]) -> Iterator[tuple[Recipe, Plan]]:
    """Every recipe for the model with every plan for its inputs."""
    plans = list(inputs.plans(model_class))
    return ((recipe, plan) for recipe in RECIPES for plan in plans)


def _repaired(model_class: type[Any], recipe: Recipe, plan: Plan, error: str) -> Plan | None:
    """A plan with as many picture tokens in the text as the model says that it needs."""
    match = _TOKENS.search(error)
    if match is None:
        return None
    token = _media_token(shrunk(model_class.config_class, recipe))
    if token is None:
        return None
    features = int(match[2])
    return replace(plan, tokens=features // inputs.SHAPES[0].batch, token=token)


def _media_token(config: Any) -> int | None:
    names = ("image_token_id", "image_token_index", "audio_token_index", "audio_token_id", "video_token_id")
    for each in (config, *sub_configs(config).values()):
        for name in names:
            value = getattr(each, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def _in_fork(model_class: type[Any], recipe: Recipe, plan: Plan, dtype: torch.dtype | None) -> _Trial:
    return _forked(lambda: _try(model_class, recipe, plan, dtype))


def _forked(attempt: Callable[[], _Trial]) -> _Trial:
    """Try in a fork, within a time limit."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process == 0:
            _quietly(lambda: answer.write_bytes(pickle.dumps(attempt())))
        _, ending = os.waitpid(process, 0)
        if not answer.is_file():
            return _Trial(f"ended by signal {os.WTERMSIG(ending)}" if os.WIFSIGNALED(ending) else "ended silently")
        found: _Trial = pickle.loads(answer.read_bytes())
        return found


def _quietly(work: Callable[[], Any]) -> None:
    """Run `work` without streams, and end this process."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(TRIAL_SECONDS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        work()
    finally:
        os._exit(0)


def _try(model_class: type[Any], recipe: Recipe, plan: Plan, dtype: torch.dtype | None) -> _Trial:
    from graphmend_evaluation.loading import seed

    seed()
    try:
        model, found = build(model_class, recipe, plan, dtype)
    except NoInput as error:
        return _Trial(str(error), built=True)
    except CannotShrink as error:
        return _Trial(str(error))
    except Exception as error:  # a constructor of the package may raise anything for values that do not fit
        return _Trial(f"[{recipe.name}] {type(error).__name__}: {_one_line(str(error))}")
    good, first = [], ""
    for number, call in enumerate(found):
        try:
            with torch.no_grad():
                model(**call)
        except Exception as error:  # and so may its forward
            first = first or f"[{recipe.name}, {plan.media}] {type(error).__name__}: {_one_line(str(error))}"
            if number == 0:
                return _Trial(first, built=True)
        else:
            good.append(number)
    return _Trial("", tuple(good), built=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def dtype_named(name: str) -> torch.dtype:
    """`float16` and the like. Raises `LoadError` for anything else."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise LoadError(f"#{name} is not a floating-point dtype of torch, such as #float16")
    return found
