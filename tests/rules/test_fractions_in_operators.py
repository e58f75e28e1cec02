"""Numbers with a fraction that only the data tells (GM802) are no arguments of opaque operators (GM801)."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences, compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


def ranks(x, scale):
    _, places, counts = torch.unique(x.round(), return_inverse=True, return_counts=True)
    sizes = torch.zeros_like(counts, dtype=torch.float32)
    sizes.scatter_add_(0, places.flatten(), x.flatten())
    return (sizes * scale)[places]


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        mask = x < y
        part = {number}
        {lines}
"""
_STATEMENTS = (
    "c = x * (1 - part)\n        if torch.isinf(y).any():\n            c = c.clone().zero_()\n        return c + part"
)
_INPUTS = ["torch.randn(2, 3), torch.zeros(2, 3)", "torch.randn(2, 3), torch.full((2, 3), inf)"]
_WAYS = (Scenario(gradients="off"), Scenario(training=True, gradients="inner"))


@pytest.mark.parametrize("lines", [_STATEMENTS, "return ranks(x, part)", "return ranks(x, scale=1.0 - part) + part"])
def test_a_fraction_that_data_tells_breaks_the_graph_before_an_operator(lines: str) -> None:
    text = _MODEL.format(number="mask.sum().item() / mask.numel()", lines=lines)
    after, result = fixed(text, opaque=True)
    assert {"GM801", "GM802"} <= {each.code for change in result.fixes for each in change.applied}
    assert not list(compiled_differences(after, _INPUTS, scenarios=_WAYS, backend="aot_eager", state=False))


@pytest.mark.parametrize("number", ["0.25", "-float(x.shape[0])", "float('nan')", "0.0"])
@pytest.mark.parametrize("dynamic", [None, True, False])
def test_a_float_that_is_known_goes_into_the_operator(number: str, dynamic: bool | None) -> None:
    after, _ = fixed(_MODEL.format(number=number, lines="return ranks(x, part)"), opaque=True)
    compiles(after, _INPUTS[:1], scenarios=_WAYS, dynamic=dynamic, state=False)
