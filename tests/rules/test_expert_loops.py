"""Loops over experts that get segments of sorted rows."""

from __future__ import annotations

from textwrap import dedent

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

MODULE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2, dim=-1)
        return self.infer(x, chosen.view(-1), weights.view(-1, 1))

    @torch.no_grad()
    def infer(self, x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor):
        result = torch.zeros_like(x)
        order = chosen.argsort()
        ends = chosen.bincount().cpu().numpy().cumsum(0)
        rows = order // 2
        for i, end in enumerate(ends):
            start = 0 if i == 0 else ends[i - 1]
            if start == end:
                continue
            expert = self.experts[i]
            own = rows[start:end]
            out = expert(x[own])
            out = out * weights[order[start:end]]
            result = result.to(out.dtype)
            result.scatter_reduce_(0, own.view(-1, 1).repeat(1, x.shape[-1]), out, reduce="sum")
        return result
"""


def test_segments_of_sorted_rows_are_one_operator_unless_a_round_rebinds_their_result() -> None:
    declined(MODULE, "`result = result.to(out.dtype)` may change the dtype or shape", select=("GM502",))
    after, _ = fixed(MODULE.replace("result = result.to(out.dtype)", "pass"), select=("GM502",))
    assert "_run_experts(self, result" in after
    compiles(after, ["torch.randn(5, 4)"], state=False)


def test_the_function_is_called_after_what_holds_the_layers() -> None:
    source = MODULE.replace("result = result.to(out.dtype)", "pass").replace(
        "self.gate = nn", "self.beginning = len('ab') * 0\n        self.gate = nn"
    )
    after, _ = fixed(source.replace("for i, end in enumerate(ends)", "for i, end in enumerate(ends, self.beginning)"))
    assert "result = _run_experts(self, result" in after


def test_segments_of_python_sizes_are_left_alone() -> None:
    source = dedent("""
    import torch
    from torch import nn


    class Model(nn.Module):
        def forward(self, x: torch.Tensor):
            result = torch.zeros_like(x)
            for i in range(3):
                start = i * 2
                end = start + 2
                result[start:end] = x[start:end] * i
            return result
    """)
    assert checked(source, select=("GM502",)).findings == ()


ROUTED = """
import torch
from torch import nn

scale = 1.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.experts[1] = self.experts[0]
        self.experts[2].weight = self.experts[0].weight

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2, dim=-1)
        result = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, slot = torch.where(chosen == i)
            result[row] += expert(x[row]) * weights[row, slot, None] * scale
        return result
"""


def test_experts_that_share_a_layer_or_a_weight_keep_their_parameters() -> None:
    after, _ = fixed(ROUTED, select=("GM502",))
    assert "_run_experts(self, result" in after
    gradients = (Scenario(training=True, gradients="leaves"),)
    compiles(after, ["torch.randn(5, 4)", "torch.randn(5, 4)"], state=False, scenarios=gradients)


def test_a_gradient_does_not_run_experts_again_with_another_number_or_mode() -> None:
    changing = ROUTED.replace("class Model", "def grow():\n    global scale\n    scale *= 2\n\n\nclass Model", 1)
    declined(changing, "a function of this file changes `scale`", select=("GM502",))
    asking = ROUTED.replace("* scale", "* (1 if torch.is_grad_enabled() else 2)")
    declined(asking, "`torch.is_grad_enabled()` may have side effects", select=("GM502",))
