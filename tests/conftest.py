"""What all tests share: folders of their own for cache and reports, so that none reads or fills the user's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's folders for cache and reports during this session; tests that look into it name another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("GRAPHMEND_REPORTS", str(tmp_path_factory.mktemp("reports")))
        patch.delenv("GRAPHMEND_CACHE_DIR", raising=False)
        yield
