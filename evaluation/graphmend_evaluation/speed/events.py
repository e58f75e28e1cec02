"""From the profiler's events to counts: a pure function over the events of a Chrome trace.

`torch.profiler` writes each event as `{"ph": "X", "cat": ..., "name": ..., "ts": ..., "args": {...}}`. `cat` is
`cpu_op`, `user_annotation`, `cuda_runtime` (calls such as `cudaLaunchKernel`), `cuda_driver` (`cuLaunchKernel`, which
Triton uses), and on the device `kernel`, `gpu_memcpy` (`Memcpy DtoH (Device -> Pageable)`) and `gpu_memset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphmend_evaluation.speed.results import ProfileCounts

MARK = "graphmend: measured calls"
_REGION = "Torch-Compiled Region"
_HOST_CATEGORIES = ("cuda_runtime", "cuda_driver")
_LAUNCHES = frozenset(
    "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cuLaunchKernel cuLaunchKernelEx "
    "cuLaunchCooperativeKernel".split()
)
_GRAPH_LAUNCHES = frozenset("cudaGraphLaunch cuGraphLaunch".split())
_SYNCS = frozenset(
    "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize "
    "cuStreamSynchronize cuCtxSynchronize cuEventSynchronize".split()
)
# The versions that a symbol table tells apart: per-thread default stream, and later signatures.
_SUFFIXES = ("_ptsz", "_ptds", "_v2", "_v1", "_v10000", "_v11060")


def profile_counts(events: Iterable[Mapping[str, Any]], calls: int, *, cuda: bool) -> ProfileCounts:
    """Counts per call of the model, over `calls` calls that ran under `record_function(MARK)`.

    What the host did counts inside the mark only: the profiler waits for the device itself when it stops. What the
    device did counts wherever it is, because it runs behind the host. Without a mark everything counts. With `cuda`
    false only `compiled_regions` is set.
    """
    found = [event for event in events if event.get("ph") == "X"]
    inside = _inside(found)
    regions = sum(str(event.get("name", "")).startswith(_REGION) for event in inside if _category(event) == "cpu_op")
    if not cuda:
        return ProfileCounts(compiled_regions=regions / calls)
    host = [_plain(str(event["name"])) for event in inside if _category(event) in _HOST_CATEGORIES]
    to_host = [event for event in found if _is_copy(event, "DtoH")]
    return ProfileCounts(
        compiled_regions=regions / calls,
        kernel_launches=sum(name in _LAUNCHES for name in host) / calls,
        graph_launches=sum(name in _GRAPH_LAUNCHES for name in host) / calls,
        kernels=sum(_category(event) == "kernel" for event in found) / calls,
        syncs=sum(name in _SYNCS for name in host) / calls,
        copies_to_host=len(to_host) / calls,
        bytes_to_host=sum(int(event.get("args", {}).get("bytes", 0)) for event in to_host) / calls,
        copies_to_device=sum(_is_copy(event, "HtoD") for event in found) / calls,
    )


def _inside(events: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events that began while the mark was open."""
    marks = [event for event in events if event.get("name") == MARK and _category(event) == "user_annotation"]
    if not marks:
        return events
    spans = [(float(mark["ts"]), float(mark["ts"]) + float(mark["dur"])) for mark in marks]
    return [event for event in events if any(start <= float(event["ts"]) <= end for start, end in spans)]


def _category(event: Mapping[str, Any]) -> str:
    return str(event.get("cat", "")).lower()


def _is_copy(event: Mapping[str, Any], direction: str) -> bool:
    return _category(event) == "gpu_memcpy" and direction in str(event.get("name", ""))


def _plain(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name
