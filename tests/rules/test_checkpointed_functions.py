"""Functions that are one operator (GM801) under an activation checkpoint."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

from tests.rules.operators import outputs_and_gradients
from tests.tools.fixes import fixed

_SOURCE = """
import torch
from torch import nn


def helper(x, factor=2.0):
    _, places, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
    sizes = torch.zeros_like(counts, dtype=torch.float32)
    sizes.scatter_add_(0, places.flatten(), x.flatten())
    return (sizes * factor)[places]


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        return helper(torch.tanh(x)) * 2
"""


def test_a_checkpoint_lets_a_function_that_no_backend_compiles_read_what_was_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject: Any = types.ModuleType("checkpointed_subject")  # Dynamo looks its names up there, also in later tests
    monkeypatch.setitem(sys.modules, "checkpointed_subject", subject)
    exec(compile(fixed(_SOURCE, opaque=True)[0], "subject.py", "exec"), vars(subject))
    model = subject.Model()

    def checkpointed(x: torch.Tensor) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x * 2.0, use_reentrant=False).sin()

    x = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
    whole = torch.compile(checkpointed, backend="eager", fullgraph=True)
    expected = outputs_and_gradients(model, checkpointed, x)
    for old, new in zip(expected, outputs_and_gradients(model, whole, x), strict=True):
        torch.testing.assert_close(new, old)
