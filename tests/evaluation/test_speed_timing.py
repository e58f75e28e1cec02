"""Timing inside a child: what compiles, what a pass is, and the GPU's branch as far as a CPU can go it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphmend_evaluation.counting import Call
from graphmend_evaluation.loading import Model
from graphmend_evaluation.speed import timing
from graphmend_evaluation.worktree import LoadError

LINEAR = torch.nn.Linear(4, 4)


def model(gradients: bool = False) -> Model:
    return Model(LINEAR, (Call((torch.ones(2, 4),)), Call((torch.ones(3, 4),))), gradients)


def test_only_calls_that_compile_have_compile_time() -> None:
    torch._dynamo.reset()
    found = timing.cold_calls(timing.Placed(model(), "cpu"), "aot_eager", 4)
    torch._dynamo.reset()
    compiling = [call["compile"][0] for call in found["calls"]]
    assert compiling[0] > 0
    assert compiling[2:] == [0.0, 0.0]
    assert found["compilations"] == 2
    assert all(call["wall"] >= call["compile"][0] for call in found["calls"])


def test_the_time_of_compilation_is_what_torch_itself_adds_up() -> None:
    from torch._dynamo import utils

    torch._dynamo.reset()
    utils.compilation_time_metrics.clear()
    found = timing.cold_calls(timing.Placed(model(), "cpu"), "aot_eager", 2)
    theirs = sum(utils.compilation_time_metrics["_compile.compile_inner"])
    torch._dynamo.reset()
    assert sum(call["compile"][0] for call in found["calls"]) == pytest.approx(theirs, rel=0.3, abs=0.1)


def test_a_block_times_passes_over_all_calls(tmp_path: Path) -> None:
    served = timing.Served(timing.Placed(model(), "cpu"), "eager", tmp_path)
    assert served.warm_up() == {"compilations": 0, "settled": True}
    found = served.block(7)
    assert len(found["seconds"]) == 7
    assert found["calls_per_s"] > 0


def test_a_factory_that_asks_for_gradients_gets_its_backward_timed() -> None:
    LINEAR.zero_grad()
    timing.run_call(model(gradients=True), LINEAR, Call((torch.ones(2, 4),)))
    assert LINEAR.weight.grad is not None


def test_without_a_compiler_the_backend_is_another_and_a_remark_says_so() -> None:
    from torch._inductor import config, cpp_builder

    cpp_builder.cpp_compiler_search.cache_clear()
    with config.patch({"cpp.cxx": ("no-such-compiler",)}):
        backend, remark = timing.usable_backend("inductor")
    cpp_builder.cpp_compiler_search.cache_clear()
    assert backend == "aot_eager"
    assert "no C++ compiler" in remark


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_is_refused_where_there_is_none() -> None:
    assert timing.device("auto") == "cpu"
    with pytest.raises(LoadError, match="no CUDA device"):
        timing.device("cuda")


class _Event:
    """Stands for torch.cuda.Event: 2 ms between any two."""

    def __init__(self, enable_timing: bool = False) -> None:
        assert enable_timing
        self.recorded = self.waited = False

    def record(self) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        self.waited = True

    def elapsed_time(self, other: _Event) -> float:
        assert self.recorded
        assert other.recorded
        assert other.waited
        return 2.0


def test_on_cuda_a_pass_is_timed_by_events_that_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: waits.append(2))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 4096)
    served = timing.Served(timing.Placed(model(), "cuda"), "eager", tmp_path)
    served.warm_up()
    found = served.block(3)
    assert found["seconds"] == [0.001] * 3  # 2 ms over two calls
    assert found["calls_per_s"] > 0
    waits.clear()
    assert served.peak_bytes(2) == 4096
    assert waits == [1, 2, 1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_real_gpu_everything_is_measured(tmp_path: Path) -> None:
    placed = timing.moved(model(), "cuda")
    served = timing.Served(placed, "reduce-overhead", tmp_path)
    assert served.warm_up()["settled"]
    assert all(seconds > 0 for seconds in served.block(5)["seconds"])
    assert (served.peak_bytes(2) or 0) > 0
    counts = served.profile()
    assert counts["graph_launches"] >= 1
    assert counts["copies_to_host"] == 0
