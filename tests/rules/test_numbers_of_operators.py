"""Numbers that only the data tells (GM802) as arguments of operators that ask for their value."""

from __future__ import annotations

import pytest

from tests.rules.unbacked_models import CODE, TRAINING
from tests.tools.compiled import compiled_differences
from tests.tools.fixes import declined, fixed

_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.tensor(2))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: torch.Tensor):
        n = self.n.item()
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return torch.lerp(x, x * 2, 1.0 / n)",
        "return self.mean.lerp_(x.detach().mean(0), weight=n)",
        "w = 1 / max(n, 1)\n        return x.lerp(x * 2, w)",
    ],
)
def test_a_weight_that_decides_how_torch_computes_stays_outside_of_the_graph(line: str) -> None:
    declined(_MODEL.format(line=line), "asks how large its weight is", **CODE)


@pytest.mark.parametrize(
    "line",
    [
        "return torch.add(x, x * 2, alpha=n)",
        "return torch.baddbmm(x[None], x[None], x[None, :, :3] @ x, beta=n)",
        "return F.celu(x, n)",
        "return F.celu(x, alpha=1.0 / n)",
        "return torch.xlogy(x, n)",
        "return n**x",
        "return x.abs() ** n",
    ],
)
def test_a_gradient_that_asks_for_a_number_is_asked_for(line: str) -> None:
    after = fixed(_MODEL.format(line=line), **CODE)[0]
    assert "not torch.is_grad_enabled()" in after, after
    backend = "aot_eager_decomp_partition"
    assert not list(compiled_differences(after, ["torch.rand(3, 4)"], scenarios=TRAINING, backend=backend))


def test_a_number_that_no_operator_asks_for_is_in_the_graph_with_gradients() -> None:
    after = fixed(_MODEL.format(line="return torch.lerp(x, x.clamp(max=n), 0.5)"), **CODE)[0]
    assert "_number_in_graph(self.n)" in after
    assert "not torch.is_grad_enabled()" not in after, after
    backend = "aot_eager_decomp_partition"
    assert not list(compiled_differences(after, ["torch.rand(3, 4)"], scenarios=TRAINING, backend=backend))
