"""What an expert loop reads (GM502) and is written in place behind it: the gradient of its operator would need it."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiled_differences
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x: torch.Tensor):
        rows = x * 2.0
        kinds = rows.argmax(-1)
        view = rows[:, :2]
        result = x.clone()
        for i in range(3):
            chosen = kinds == i
            if chosen.any():
                result[chosen] = self.experts[i](rows[chosen])
        {later}
        return result * 2, rows + 0
"""
_BREAK = "torch._dynamo.graph_break()\n        "
_INPUTS = ["torch.randn(4, 3)", "torch.randn(4, 3) * 9"]
_ASKS = "not torch.is_grad_enabled()"


def _loop(text: str) -> str:
    """The function that holds the loop."""
    return text.partition("def _run_experts(")[2].partition("@_one_operator")[0]


@pytest.mark.parametrize("later", ["rows.zero_()", "view.mul_(0.5)", "rows[0] = 1.0", "kinds.zero_()", "kinds += 1"])
def test_what_is_written_behind_the_loop_is_in_the_graph_without_gradients_alone(later: str) -> None:
    after, _ = fixed(_MODEL.format(later=_BREAK + later))
    assert _ASKS in _loop(after)
    trained = Scenario(training=True, gradients="inner")
    assert not list(compiled_differences(after, _INPUTS, scenarios=(trained,), backend="aot_eager", state=False))


@pytest.mark.parametrize(
    "later", ["rows = rows + 1", "kinds = kinds + 1", "result.mul_(0.5)", "view = view * 2", "return result * 2, rows"]
)
def test_what_is_not_written_may_need_a_gradient(later: str) -> None:
    after, _ = fixed(_MODEL.format(later=_BREAK + later))
    assert "_run_experts_operator" in _loop(after)
    assert _ASKS not in _loop(after)
    trained = Scenario(training=True, gradients="inner")
    assert not list(compiled_differences(after, _INPUTS, scenarios=(trained,), backend="aot_eager", state=False))
