"""What all tests share: folders for cache and reports that are not the user's, and less work for the collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

gc.disable()  # while modules are imported
# With each new cache Inductor compiles a program to see whether the processor does what it says: six seconds.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark variants as slow of which quicker ones run: scripts/slow_variants.py lists them."""
    listed = set(Path(__file__).with_name("slow_variants.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking at all of torch again and again: a fifth of the time of most tests.

    What Dynamo makes for a graph is soon garbage, so that looking for it seldom is enough.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's folders for cache and reports during this session; tests that look into it name another.

    Downloads have one for all tests, since only children with equal variables are forked from one process.
    """
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(cache))
        for name, folder in (("HF_HUB_CACHE", "hub"), ("HF_DATASETS_CACHE", "datasets"), ("TORCH_HOME", "torch")):
            patch.setenv(name, str(cache / folder))
        patch.setenv("GRAPHMEND_REPORTS", str(tmp_path_factory.mktemp("reports")))
        patch.delenv("GRAPHMEND_CACHE_DIR", raising=False)
        yield
