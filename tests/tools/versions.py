"""What newer versions than the pinned ones do differently, for tests that `make test-latest` runs as well."""

from __future__ import annotations

from importlib.metadata import version

import pytest
import torch

NEWER_TORCH = torch.__version__ >= "2.15"
TRACED_BY_NEWER_TORCH = pytest.mark.skipif(NEWER_TORCH, reason="torch 2.15 traces it")
WARNS_IN_NEWER_TRANSFORMERS = pytest.mark.skipif(
    int(version("transformers").partition(".")[0]) > 4,
    reason="a function of transformers 5 warns, and the graph breaks there",
)
