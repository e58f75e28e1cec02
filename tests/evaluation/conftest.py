"""What compiling costs in tests and proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.compiled import quick_dynamo


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Not for tests of what Dynamo logs."""
    with quick_dynamo():
        yield
