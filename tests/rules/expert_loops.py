"""Loops over experts as operators: a model with one, its fix loaded, and its results and gradients."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.tools.fixes import embedded, fixed

_SETUP = """
import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(8, track_running_stats=False)
        self.leave = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.leave(self.changed(torch.tanh(self.enter(x))))

    def changed(self, x):
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList([Expert() for _ in range(3)])
        self.scale = nn.Parameter(torch.ones(3, 4))
        self.top = 2

    def forward(self, x: torch.Tensor, factor=2):
        weights, chosen = torch.topk(torch.softmax(self.gate(x), dim=-1, dtype=torch.float32), 2, dim=-1)
        weights = weights.to(x.dtype)
        result = torch.zeros_like(x)
        ...
        return result * 2
"""
LOOP = """
for i, expert in enumerate(self.experts):
    row, slot = torch.where(chosen == i)
    result.index_add_(0, row, (expert(x[row]) * weights[row, slot, None] * self.scale[i] * factor).to(x.dtype))
"""


def written(loop: str = LOOP) -> str:
    return embedded(loop, _SETUP)


def with_expert(changed: str) -> str:
    return embedded(LOOP, _SETUP.replace("        return x\n\n\nclass", f"        return {changed}\n\n\nclass"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    sys.modules.pop("outlined_subject", None)
    torch._dynamo.reset()


def loaded(source: str) -> types.ModuleType:
    module = sys.modules["outlined_subject"] = types.ModuleType("outlined_subject")
    exec(compile(fixed(source, select=("GM502",))[0], "subject.py", "exec"), vars(module))
    return module


def made(source: str) -> Any:
    torch.manual_seed(0)
    return vars(loaded(source))["Model"]()


def results(model: Any, call: Callable[..., Any], *given: Any) -> list[torch.Tensor | None]:
    """The output and all gradients, the random state put back before."""
    model.zero_grad()
    torch.manual_seed(1)
    copies = [each.detach().clone().requires_grad_() if isinstance(each, torch.Tensor) else each for each in given]
    output = call(*copies)
    output.float().square().sum().backward()
    return [output.detach(), copies[0].grad, *(each.grad for each in model.parameters())]


def same(old: list[torch.Tensor | None], new: list[torch.Tensor | None], within: float = 0.0) -> None:
    for first, second in zip(old, new, strict=True):
        expected = torch.zeros_like(second) if first is None and second is not None else first
        if expected is not None:
            assert second is not None
            torch.testing.assert_close(second, expected, rtol=within, atol=within)


def one_graph(model: Any, backend: str = "aot_eager") -> Callable[..., Any]:
    torch._dynamo.reset()
    compiled: Any = torch.compile(model, backend=backend)

    def strict(*given: Any) -> Any:
        with torch._dynamo.error_on_graph_break(True):  # `fullgraph` would capture shapes that depend on data
            return compiled(*given)

    return strict


X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
