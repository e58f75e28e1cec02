"""Time calls of a model: in a fresh process, or again and again. Runs in a child process; imports torch."""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.utils import counters
from torch.utils._pytree import tree_map_only

from graphmend_evaluation import loading
from graphmend_evaluation.compare import close_difference, digest, exact_differences, take_apart
from graphmend_evaluation.counting import Call
from graphmend_evaluation.loading import Model, seed
from graphmend_evaluation.results import to_json
from graphmend_evaluation.runs import backward, modes
from graphmend_evaluation.speed.events import MARK, profile_counts
from graphmend_evaluation.speed.peak_memory import forget_peak, peak_resident_bytes
from graphmend_evaluation.worktree import LoadError

EAGER = "eager"
REDUCE_OVERHEAD = "reduce-overhead"
_FEWEST_WARM_UPS = 5
_MOST_WARM_UPS = 40
_PROFILED_PASSES = 3


@dataclass(frozen=True)
class Placed:
    """A model on its device, ready to be called."""

    model: Model
    device: str

    @property
    def on_cuda(self) -> bool:
        """Whether the host must wait for the device."""
        return self.device == "cuda"

    def wait(self) -> None:
        """Wait for the device."""
        if self.on_cuda:
            torch.cuda.synchronize()


@dataclass(frozen=True)
class Clock:
    """Seconds of wall time and of processor time, with the processor time of children that were waited for."""

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> Clock:
        """The time since some moment."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime)

    def __sub__(self, other: Clock) -> Clock:
        return Clock(self.wall - other.wall, self.cpu - other.cpu)

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.wall + other.wall, self.cpu + other.cpu)


class CompileClock:
    """The time that passes while torch compiles, in Dynamo, its backend and CUDA graph recording, and how often.

    Dynamo calls back at the outermost start and end of a compilation; nested ones are inside.
    """

    def __init__(self) -> None:
        self.spent = Clock(0.0, 0.0)
        self.compilations = 0
        self._began: Clock | None = None

    @contextlib.contextmanager
    def listening(self) -> Iterator[CompileClock]:
        """Measure while this is open."""
        from torch._dynamo.callback import callback_handler

        callback_handler.register_start_callback(self._start)
        callback_handler.register_end_callback(self._end)
        try:
            yield self
        finally:
            callback_handler.remove_start_callback(self._start)
            callback_handler.remove_end_callback(self._end)

    def _start(self, *_: object) -> None:  # older versions of torch pass nothing
        self.compilations += 1
        self._began = Clock.now()

    def _end(self, *_: object) -> None:
        if self._began is not None:
            self.spent += Clock.now() - self._began
            self._began = None


def device(asked: str) -> str:
    """`cuda` or `cpu`, for `auto` whichever there is.

    Raises `LoadError` when CUDA is asked for and not there.
    """
    if asked == "cuda" and not torch.cuda.is_available():
        raise LoadError("torch finds no CUDA device here: pass --device cpu, or see what nvidia-smi says")
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return asked


def gpu_name(device: str) -> str:
    """The name of the GPU, empty on a CPU."""
    return torch.cuda.get_device_name() if device == "cuda" else ""


def gpu_uuid(device: str) -> str:
    """The id by which the driver's tools know the GPU; empty on a CPU, and for a torch that does not tell it."""
    uuid = getattr(torch.cuda.get_device_properties(), "uuid", None) if device == "cuda" else None
    return "" if uuid is None else f"GPU-{uuid}"


def more_versions(asked: str) -> list[tuple[str, str]]:
    """What a timing on a GPU depends on beside torch."""
    if device(asked) != "cuda":
        return []
    triton = sys.modules.get("triton")
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    found = {"cuda": torch.version.cuda, "cudnn": cudnn, "triton": getattr(triton, "__version__", None)}
    return [(name, str(version)) for name, version in found.items() if version is not None]


def usable_backend(asked: str) -> tuple[str, str]:
    """The backend and a remark: Inductor needs a C++ compiler, without one graphs run as AOTAutograd leaves them."""
    if asked != "inductor":
        return asked, ""
    from torch._inductor import cpp_builder, exc

    try:
        cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler:
        remark = "no C++ compiler was found, which Inductor needs: backend aot_eager instead, whose graphs are not fast"
        return "aot_eager", remark
    return asked, ""


def compile_something(backend: str, device: str) -> None:
    """Start the compiler once: what that takes is no model's."""
    # Two graphs: the machinery of breaks is loaded too, before the arm that still has some.
    seed()
    function = torch.compile(_trivial, backend=backend)
    with torch.no_grad():
        function(torch.ones(8, device=device))
    if device == "cuda":
        torch.cuda.synchronize()


def _trivial(x: torch.Tensor) -> torch.Tensor:
    x = torch.nn.functional.gelu(x) + 1
    torch._dynamo.graph_break()
    return x.sum() * 2


def save_pins(model: Model, folder: Path) -> None:
    """Save weights and inputs for every other process."""
    loading.save_pins(model, folder)


def load_pins(model: Model, folder: Path) -> None:
    """Give `model` the weights and inputs that were saved.

    Raises `LoadError` when they do not fit.
    """
    loading.load_pins(model, folder)


def with_calls(model: Model, numbers: Sequence[int] | None) -> Model:
    """The model with only some of its calls."""
    if numbers is None:
        return model
    return Model(model.target, tuple(model.calls[number] for number in numbers), model.gradients)


def moved(model: Model, device: str) -> Placed:
    """The model on `cpu`, where it is, or on `cuda`."""
    return Placed(model if device == "cpu" else model_on(model, torch.device(device)), device)


def model_on(model: Model, device: torch.device) -> Model:
    """The model and its inputs on a device."""
    if model.module is not None:
        model.module.to(device)

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    calls = tuple(
        Call(tree_map_only(torch.Tensor, move, call.args), tree_map_only(torch.Tensor, move, dict(call.kwargs or {})))
        for call in model.calls
    )
    return Model(model.target, calls, model.gradients)


def usable_calls(placed: Placed) -> tuple[list[int], list[str]]:
    """The numbers of the calls that return in eager mode, and what the others raise."""
    usable, errors = [], []
    seed()
    for number, call in enumerate(placed.model.calls):
        try:
            run_call(placed.model, placed.model.target, call)
            placed.wait()
            usable.append(number)
        except Exception as error:  # the model's own exceptions are its results
            errors.append(f"call {number + 1} raises {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    return usable, errors


def run_call(model: Model, target: Callable[..., Any], call: Call) -> None:
    """One call, with its backward where the factory asks for gradients."""
    with modes(model):
        output = call.on(target)
        if model.gradients:
            backward(model, output)


def compiled(model: Model, configuration: str) -> Callable[..., Any]:
    """The target as `configuration` runs it, compiled with torch's own defaults."""
    if configuration == EAGER:
        return model.target
    if configuration == REDUCE_OVERHEAD:
        return torch.compile(model.target, mode=REDUCE_OVERHEAD)
    return torch.compile(model.target, backend=configuration)


def cold_calls(placed: Placed, backend: str, count: int) -> dict[str, Any]:
    """The first `count` calls of the compiled model; where the factory has fewer, they begin anew."""
    target = compiled(placed.model, backend)
    clock = CompileClock()
    calls = []
    counters.clear()
    seed()
    gc.collect()
    with clock.listening():
        for number in range(count):
            spent, began = clock.spent, Clock.now()
            run_call(placed.model, target, placed.model.calls[number % len(placed.model.calls)])
            placed.wait()
            taken, compiling = Clock.now() - began, clock.spent - spent
            calls.append({"wall": taken.wall, "cpu": taken.cpu, "compile": [compiling.wall, compiling.cpu]})
    found = {"calls": calls, "compilations": clock.compilations, "peak_bytes": peak_resident_bytes()}
    found["graphs"], found["breaks"] = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
    return {**found, **_checks(placed, target)}


def _checks(placed: Placed, target: Callable[..., Any]) -> dict[str, Any]:
    """Digests of the first call's eager result, and how the compiled model's result differs, empty if it does not.

    Nothing is said of a model that raises now, or whose eager results change from call to call.
    """
    call = placed.model.calls[0]
    results = []
    try:
        for each in (placed.model.target, placed.model.target, target):
            seed()
            with modes(placed.model):
                results.append(take_apart(call.on(each)))
    except Exception:  # the model's own
        return {"eager": None, "differs": ""}
    eager, again, from_graph = results
    if exact_differences(eager, again, limit=1):
        return {"eager": None, "differs": ""}
    digests = {path: digest(tensor) for path, tensor in eager.tensors.items()}
    return {"eager": [digests, eager.values], "differs": close_difference(eager, from_graph) or ""}


class Served:
    """A model that is called again and again. Its methods are the requests of the parent."""

    def __init__(self, placed: Placed, configuration: str, folder: Path) -> None:
        self._placed = placed
        self._configuration = configuration
        self._target = compiled(placed.model, configuration)
        self._folder = folder

    def warm_up(self) -> dict[str, Any]:
        """Call until nothing is compiled any more."""
        clock = CompileClock()
        seed()
        with clock.listening():
            for number in range(_MOST_WARM_UPS):
                known = clock.compilations
                self._pass()
                self._placed.wait()
                settled = number + 1 >= _FEWEST_WARM_UPS and clock.compilations == known
                if settled:
                    break
        # What is there now stays: looking through it before each block takes longer than the block.
        gc.collect()
        gc.freeze()
        return {"compilations": clock.compilations, "settled": settled}

    def block(self, passes: int) -> dict[str, Any]:
        """Seconds per call of each of `passes`, and calls per second without waiting between them."""
        gc.collect()
        if not self._placed.on_cuda:
            seconds = [self._timed_pass() for _ in range(passes)]
            return {"seconds": seconds, "calls_per_s": 1 / statistics.fmean(seconds)}
        seconds = [self._cuda_pass() for _ in range(passes)]
        began = time.perf_counter()
        for _ in range(passes):
            self._pass()
        torch.cuda.synchronize()
        return {"seconds": seconds, "calls_per_s": passes * self._calls / (time.perf_counter() - began)}

    def peak_bytes(self, passes: int) -> int | None:
        """The most memory at any time of `passes`: allocated on CUDA, resident on a CPU."""
        if self._placed.on_cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        elif not forget_peak():
            return None
        for _ in range(passes):
            self._pass()
        self._placed.wait()
        return torch.cuda.max_memory_allocated() if self._placed.on_cuda else peak_resident_bytes()

    def profile(self) -> dict[str, Any]:
        """Counts of a few passes. The profiler slows everything down: nothing is timed."""
        from torch.profiler import ProfilerActivity, profile, record_function

        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self._placed.on_cuda
        self._placed.wait()
        with profile(activities=activities) as profiler:
            with record_function(MARK):
                for _ in range(_PROFILED_PASSES):
                    self._pass()
            self._placed.wait()
        trace = self._folder / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events: list[Mapping[str, Any]] = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
        trace.unlink()
        counts = profile_counts(events, _PROFILED_PASSES * self._calls, cuda=self._placed.on_cuda)
        found: dict[str, Any] = to_json(counts)
        return found

    @property
    def _calls(self) -> int:
        return len(self._placed.model.calls)

    def _pass(self) -> None:
        if self._configuration == REDUCE_OVERHEAD:
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        for call in self._placed.model.calls:
            run_call(self._placed.model, self._target, call)

    def _timed_pass(self) -> float:
        began = time.perf_counter()
        self._pass()
        return (time.perf_counter() - began) / self._calls

    def _cuda_pass(self) -> float:
        """By events on the stream, waited for: no pass hides behind the one before it."""
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record()
        self._pass()
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1000 / self._calls
