"""Loops over experts in the forms that models are written in: counted and sorted rows, split sizes, self casts."""

from __future__ import annotations

from textwrap import dedent

from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed

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
            out.mul_(weights[order[start:end]])
            result = result.to(out.dtype)
            result.scatter_reduce_(0, own.view(-1, 1).repeat(1, x.shape[-1]), out, reduce="sum")
        return result
"""

SPLIT = """
import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, inputs, sizes):
        pieces = inputs.split(sizes, dim=0)
        done = []
        for i in range(3):
            done.append(F.linear(pieces[i], self.weight[i]))
        joined = torch.cat(done, dim=0)
        return joined


class Gate(nn.Module):
    def forward(self, x: torch.Tensor):
        chosen = (x.sum(-1) > 0).long()
        sizes = F.one_hot(chosen, num_classes=3).sum(0)
        sizes = sizes.tolist()
        return chosen.argsort(), sizes


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()
        self.experts = Experts()

    def forward(self, x: torch.Tensor):
        order, sizes = self.gate(x)
        return self.experts(x[order], sizes)
"""


def test_counted_and_sorted_rows_are_one_graph() -> None:
    after, _ = fixed(MODULE, select=("GM502",), unsafe_fixes=True)
    assert "expert_of_row = chosen[order]" in after
    compiles(after, ["torch.randn(5, 4)"])


def test_split_sizes_stay_a_tensor_when_all_who_split_take_one() -> None:
    after, _ = fixed(SPLIT, select=("GM502",), unsafe_fixes=True)
    assert "if not torch.compiler.is_compiling():" in after
    compiles(after, ["torch.randn(5, 4)"])


def test_split_sizes_that_are_used_elsewhere_are_read_back() -> None:
    source = SPLIT.replace("return self.experts(x[order], sizes)", "return self.experts(x[order], sizes) * max(sizes)")
    after, _ = fixed(source, select=("GM502",), unsafe_fixes=True)
    assert "if not torch.compiler.is_compiling():" not in after


def test_a_rank_that_is_known_only_inside_the_loop_declines() -> None:
    source = MODULE.replace("x[own]", "self.table[i][own]")
    declined(source, "may change state of the instance", select=("GM502",))


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
