"""One case in one arm: the child process that `cost_runs` starts, which answers a line of JSON for a line of JSON.

    python cost_child.py --work FOLDER [--device cpu]

Requests: `load` says of which case, in which arm; `imported` names the files that its model is made of; `cold` compiles
the calls of a phase with caches of their own until nothing more is compiled; `block` times passes over them; `memory`
says how much a pass takes at most. Torch has one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache

from graphmend_evaluation.child_process import die_with_parent, outcome
from graphmend_evaluation.counting import Call
from graphmend_evaluation.loading import Model, seed
from graphmend_evaluation.speed import peak_memory, timing
from graphmend_evaluation.worktree import LoadError

_MOST_PASSES = 12


class Block(torch.nn.Module):
    """A model with the feed-forward layer of a transformer behind it, as wide as the first tensor that it returns."""

    def __init__(self, inner: torch.nn.Module, call: Call) -> None:
        super().__init__()
        self.inner = inner
        with torch.no_grad():
            found = _first_tensor(copy.deepcopy(call).on(copy.deepcopy(inner)))
        width = found.shape[-1]
        self.behind = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer makes of the first tensor that the model returns."""
        return self.behind(_first_tensor(self.inner(*args, **kwargs)).float())


def _first_tensor(value: Any) -> torch.Tensor:
    while not isinstance(value, torch.Tensor):
        value = value[0]
    return value


class Child:
    """The model of a case, and the phase that is compiled now."""

    def __init__(self, work: Path, device: str) -> None:
        self._work, self._device = work, device
        self._arm = Path()
        self._build: dict[str, Any] = {}
        self._started = False
        self._source: Callable[[], tuple[torch.nn.Module, list[Call]]] | None = None
        self._caches = contextlib.ExitStack()
        self._model: Model | None = None
        self._target: Callable[..., Any] | None = None

    def load(self, arm: str, build: dict[str, Any]) -> dict[str, Any]:
        """Import what a case needs, and start the toolchain once."""
        self._arm, self._build = Path(arm).resolve(), build
        if str(self._arm) not in sys.path:
            sys.path.insert(0, str(self._arm))
        self._source = {"rules": self._rule, "experts": self._expert, "types": self._type}[self._build["kind"]]()
        if not self._started:
            timing.compile_something("inductor", self._device)
            self._started = True
        return {"gpu": timing.gpu_name(self._device)}

    def imported(self) -> dict[str, Any]:
        """The files of the arm that making the model imports."""
        assert self._source is not None
        self._source()
        files = [Path(str(getattr(module, "__file__", ""))) for module in list(sys.modules.values())]
        return {"files": [str(each.relative_to(self._arm)) for each in files if each.is_relative_to(self._arm)]}

    def cold(self, calls: list[int], gradients: bool, block: bool = False) -> dict[str, Any]:
        """Compile: seconds of all passes until one compiles nothing, and what was compiled."""
        torch._dynamo.reset()
        self._caches.close()
        self._caches.enter_context(fresh_cache(dir=str(self._work)))
        self._model = self._prepared(calls, gradients, block)
        if gradients and not self._has_gradients(self._model):
            return {"gradients": False}
        self._target = torch.compile(self._model.target)
        counters.clear()
        clock = timing.CompileClock()
        gc.collect()
        seed()
        began = timing.Clock.now()
        with clock.listening():
            for number in range(_MOST_PASSES):
                known = clock.compilations
                self._pass()
                settled = number > 0 and clock.compilations == known
                if settled:
                    break
        self._wait()
        taken = timing.Clock.now() - began
        return {
            "gradients": True,
            "cpu": taken.cpu,
            "wall": taken.wall,
            "compilations": clock.compilations,
            "graphs": counters["stats"]["unique_graphs"],
            "breaks": sum(counters["graph_break"].values()),
            "settled": settled,
        }

    def block(self, passes: int) -> dict[str, Any]:
        """Seconds of one call: processor time on a CPU, time between events on a GPU."""
        count = passes * len(self._given.calls)
        if self._device == "cuda":
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            began.record()
            for _ in range(passes):
                self._pass()
            ended.record()
            ended.synchronize()
            return {"seconds": float(began.elapsed_time(ended)) / 1000 / count}
        started = time.process_time()
        for _ in range(passes):
            self._pass()
        return {"seconds": (time.process_time() - started) / count}

    def memory(self, passes: int) -> dict[str, Any]:
        """Bytes that passes take at most, beside what the process holds anyway; None where nobody can tell."""
        if self._device == "cuda":
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            for _ in range(passes):
                self._pass()
            torch.cuda.synchronize()
            return {"bytes": torch.cuda.max_memory_allocated() - held}
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):  # only glibc gives back what the compiler has freed
            ctypes.CDLL(None).malloc_trim(0)
        if not peak_memory.forget_peak():
            return {"bytes": None}
        held_now = peak_memory.peak_resident_bytes()
        for _ in range(passes):
            self._pass()
        peak = peak_memory.peak_resident_bytes()
        return {"bytes": None if peak is None or held_now is None else peak - held_now}

    @property
    def _given(self) -> Model:
        assert self._model is not None
        return self._model

    def _pass(self) -> None:
        model = self._given
        assert self._target is not None
        for call in model.calls:
            timing.run_call(model, self._target, call)

    def _wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _prepared(self, numbers: list[int], gradients: bool, block: bool) -> Model:
        """A new model with some of its calls. With gradients, floating inputs want one too."""
        assert self._source is not None
        seed()
        module, calls = self._source()
        if block:
            module = Block(module, calls[0])
        module.train(gradients)
        model = Model(module, tuple(calls[number] for number in numbers), gradients)
        model = timing.moved(model, self._device).model
        if gradients:
            for call in model.calls:
                for value in (*call.args, *(call.kwargs or {}).values()):
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        value.requires_grad_(True)
        return model

    def _has_gradients(self, model: Model) -> bool:
        from torch.utils._pytree import tree_leaves

        seed()
        with torch.enable_grad():
            leaves = tree_leaves(model.calls[0].on(model.target))
        return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)

    def _rule(self) -> Callable[[], tuple[torch.nn.Module, list[Call]]]:
        name = f"case_{self._arm.parent.name}"  # Dynamo keeps modules by name in what inlines them
        spec = importlib.util.spec_from_file_location(name, self._arm / "case.py")
        assert spec is not None
        assert spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        sys.modules[name] = found
        spec.loader.exec_module(found)
        names = {"torch": torch, **vars(found)}

        def make() -> tuple[torch.nn.Module, list[Call]]:
            module = eval(self._build["make"], names)
            return module, [Call(eval(f"({text},)", names)) for text in self._build["inputs"]]

        return make

    def _expert(self) -> Callable[[], tuple[torch.nn.Module, list[Call]]]:
        build = self._build
        name = build["package"].rpartition(".")[2]
        modeling = self._imported(f"{build['package']}.modeling_{name}")
        configuration = importlib.import_module(f"{build['package']}.configuration_{name}")

        def make() -> tuple[torch.nn.Module, list[Call]]:
            config = getattr(configuration, build["config"])(**build["values"])
            for part, values in build["nested"].items():
                for key, value in values.items():
                    setattr(getattr(config, part), key, value)
            block = getattr(modeling, build["block"])(config)
            for parameter in block.parameters():  # some are made without values
                torch.nn.init.normal_(parameter, std=0.02)
            return block, [Call((torch.randn(1, tokens, build["width"]),)) for tokens in build["tokens"]]

        return make

    def _type(self) -> Callable[[], tuple[torch.nn.Module, list[Call]]]:
        self._imported("transformers")
        from graphmend_evaluation.huggingface.tiny import TinyModel
        from graphmend_evaluation.survey.measuring import choice_from_json
        from graphmend_evaluation.survey.types import find_class

        factory = TinyModel(find_class(self._build["class"]), None, choice_from_json(self._build["choice"]))

        def make() -> tuple[torch.nn.Module, list[Call]]:
            random.seed(0)
            module, calls, _ = factory()
            return module, [Call(kwargs=call) for call in calls]

        return make

    def _imported(self, name: str) -> Any:
        """A module of this arm's own package. Raises `LoadError` for one from elsewhere."""
        found = importlib.import_module(name)
        if not Path(str(found.__file__)).is_relative_to(self._arm):
            raise LoadError(f"{name} comes from {found.__file__}, not from {self._arm}")
        return found


def main() -> int:
    """Answer until there are no more requests."""
    parser = argparse.ArgumentParser(description="One case in one arm.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    die_with_parent()
    torch.set_num_threads(1)
    # What the models print is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    child = Child(options.work, options.device)
    for line in sys.stdin:
        request = json.loads(line)
        what = request.pop("ask")
        found = outcome(lambda what=what, request=request: getattr(child, what)(**request))  # type: ignore[misc]
        answers.write(json.dumps(found) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
