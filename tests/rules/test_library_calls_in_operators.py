"""What functions of torch do that an operator may call is known, in `torch.linalg` and for devices and sizes, too."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_FORM = """
import torch


def counted(x: torch.Tensor):
    total = torch.zeros(())
    for row in x:
        if row.sum() > 0:
            total += MADE
    return total


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return counted(x) * 2
"""
_INPUTS = ["torch.randn(4, 3, generator=torch.Generator().manual_seed(1))", "-torch.ones(2, 3)"]


@pytest.mark.parametrize(
    "made",
    [
        "torch.linalg.norm(row)",
        "torch.linalg.vector_norm(row, ord=1)",
        "torch.fft.rfft(row).abs().sum()",
        "torch.ones(torch.Size([2]), device=torch.device('cpu')).sum()",
        "row.sum() * torch.finfo(torch.float32).eps",
    ],
)
def test_it_is_called(made: str) -> None:
    text, _ = fixed(_FORM.replace("MADE", made), opaque=True)
    assert "_operator_name" in text
    compiles(text, _INPUTS, state=False)


@pytest.mark.parametrize("made", ["torch.linalg.no_such_function(row)", "torch.set_num_threads(1)", "torch.load('x')"])
def test_what_is_not_known_is_not(made: str) -> None:
    declined(_FORM.replace("MADE", made), "may have side effects", opaque=True)
