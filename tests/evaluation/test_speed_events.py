"""From events of the profiler to counts. The GPU's events have the form that torch.profiler writes them in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from graphmend_evaluation.speed.events import MARK, profile_counts
from graphmend_evaluation.speed.results import ProfileCounts

Event = dict[str, Any]


def event(category: str, name: str, ts: float, **more: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1.0, "args": more}


def mark(start: float, duration: float) -> Event:
    return {**event("user_annotation", MARK, start), "dur": duration}


def test_a_gpu_trace_is_counted_per_call() -> None:
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        mark(0.0, 100.0),
        event("gpu_user_annotation", MARK, 5.0),
        event("cpu_op", "Torch-Compiled Region: 0/0", 1.0),
        event("cpu_op", "aten::mm", 2.0),
        event("cuda_runtime", "cudaLaunchKernel", 3.0, correlation=1),
        event("kernel", "ampere_sgemm_32x32_sliced1x4_nn", 8.0, stream=7, correlation=1),
        event("cuda_driver", "cuLaunchKernelEx", 4.0, correlation=2),
        event("kernel", "triton_poi_fused_relu_0", 9.0, stream=7, correlation=2),
        event("cuda_runtime", "cudaMemcpyAsync", 10.0, correlation=3),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 11.0, bytes=4, correlation=3),
        event("cuda_runtime", "cudaStreamSynchronize", 12.0),
        event("cpu_op", "Torch-Compiled Region: 1/0", 50.0),
        event("cuda_runtime", "cudaGraphLaunch", 51.0, correlation=4),
        event("kernel", "triton_red_fused_sum_1", 60.0, **{"graph node id": 5}),
        event("kernel", "triton_poi_fused_add_2", 140.0, **{"graph node id": 6}),
        event("cuda_runtime", "cudaMemcpyAsync", 70.0),
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 71.0, bytes=64),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 72.0, bytes=64),
        event("gpu_memset", "Memset (Device)", 73.0, bytes=64),
        event("cuda_runtime", "cudaEventSynchronize", 90.0),
        event("cuda_runtime", "cudaDeviceSynchronize", 150.0),
    ]
    assert profile_counts(events, 2, cuda=True) == ProfileCounts(
        compiled_regions=1.0,
        kernel_launches=1.0,
        graph_launches=0.5,
        kernels=2.0,
        syncs=1.0,
        copies_to_host=0.5,
        bytes_to_host=2.0,
        copies_to_device=0.5,
    )


def test_what_the_profiler_does_outside_the_mark_is_not_the_models() -> None:
    events = [
        event("cuda_runtime", "cudaDeviceSynchronize", 0.0),
        mark(10.0, 10.0),
        event("cuda_runtime", "cudaLaunchKernel", 12.0),
        event("cuda_runtime", "cudaLaunchKernel", 25.0),
    ]
    found = profile_counts(events, 1, cuda=True)
    assert (found.kernel_launches, found.syncs) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cuLaunchKernel_ptsz"])
def test_every_way_to_launch_a_kernel_counts(name: str) -> None:
    category = "cuda_driver" if name.startswith("cuL") else "cuda_runtime"
    assert profile_counts([event(category, name, 0.0)], 1, cuda=True).kernel_launches == 1.0


@pytest.mark.parametrize("name", ["cudaMalloc", "cudaFuncGetAttributes", "cudaStreamIsCapturing", "cuModuleLoadData"])
def test_other_runtime_calls_do_not_count(name: str) -> None:
    found = profile_counts([event("cuda_runtime", name, 0.0)], 1, cuda=True)
    assert (found.kernel_launches, found.graph_launches, found.syncs) == (0.0, 0.0, 0.0)


def test_older_traces_with_capital_categories_are_read() -> None:
    assert profile_counts([event("Kernel", "gemm", 0.0)], 1, cuda=True).kernels == 1.0


def test_on_a_cpu_only_regions_are_counted() -> None:
    assert profile_counts([event("cpu_op", "Torch-Compiled Region: 0/0", 0.0)], 2, cuda=False) == ProfileCounts(0.5)


def test_a_real_trace_has_an_entry_for_each_part_of_a_broken_function(tmp_path: Path) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    torch._dynamo.reset()
    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(2))
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function(MARK):
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    trace = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(trace))
    torch._dynamo.reset()
    events = json.loads(trace.read_text())["traceEvents"]
    assert profile_counts(events, 2, cuda=False).compiled_regions == 2.0
