"""A later branch that a tensor and a Python value decide together: the header asks for the first test alone."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked, fixed

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, flag: bool = False):
        y = x * 0.5
        if x.sum() > 0.0:
            y = y + 1.0
        elif torch.any(x < 3) and {}:
            y = torch.clamp(y, min=-1.0, max=1.0)
        return y
"""


@pytest.mark.parametrize("beside", ["flag", "x.dtype == torch.float16", "not self.training"])
def test_a_python_value_beside_a_later_test_is_a_reason(beside: str) -> None:
    source = _SOURCE.format(beside)
    assert fixed(source)[0] == source
    assert any("decide a later branch together" in (each.declined or "") for each in checked(source).findings)


def test_a_later_test_of_tensors_alone_is_selected() -> None:
    assert "torch.where(" in fixed(_SOURCE.format("torch.all(x > -9)"))[0]
