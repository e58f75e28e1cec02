"""State that grows with a tensor of another dtype or shape is replaced as in eager mode, not promoted by a select."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.fixes import fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.most = STATE

    def forward(self, x: torch.Tensor):
        largest = x.abs().max().detach()
        if largest > self.most:
            self.most = largest
        return x / self.most
"""


@pytest.mark.parametrize("state", ["torch.tensor(0.1)", "torch.tensor([0.1])", "torch.tensor(0)", "0.1"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_state_has_the_dtype_and_shape_of_eager_mode(state: str, dtype: torch.dtype) -> None:
    after, _ = fixed(_MODEL.replace("STATE", state))
    assert "torch.where" in after
    found = []
    for compiled in (False, True):
        names: dict[str, Any] = {}
        exec(after, names)
        model = names["Model"]()
        torch._dynamo.reset()
        call = torch.compile(model, backend="eager") if compiled else model
        results = [call(torch.full((2, 2), value, dtype=dtype)) for value in (1.0, 3.0, 2.0)]
        found.append([*results, model.most])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
