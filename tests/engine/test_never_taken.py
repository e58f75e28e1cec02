"""Fixes that would never run: their header asks for what is known to be false at the site."""

from __future__ import annotations

import pytest

from tests.tools.fixes import declined, fixed, noop

MODEL = """
import copy
import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, p=0.5, drop=0.0):
        super().__init__()
        self.p = p
        self.drop = drop
        self.stop = 5.0
        self.layer = nn.Linear(4, 4)

    def forward(self, x, lengths):
        {body}
        return x
"""


def model(body: str) -> str:
    return MODEL.format(body=body.strip())


def test_an_index_that_is_a_tensor_is_no_integer() -> None:
    body = """
        ends = torch.div(lengths, 2, rounding_mode="trunc")
        for b in range(len(ends)):
            end = ends[b] + 1
            if end < x.shape[-1]:
                x[b, end:] = self.stop
"""
    declined(model(body), "a compile path would ask for `type(end) is int`, which is never so here")


@pytest.mark.parametrize(
    "body", ["y = copy.copy(x)\n        y.size_of_batch = 3", "x = copy.copy(x)\n        x = x.weights"]
)
def test_what_has_other_attributes_is_no_container(body: str) -> None:
    declined(model(body), "is no attribute of a dict, list or set")


def test_a_container_is_copied() -> None:
    after, _ = fixed(model("y = copy.copy(x)\n        y.update(a=lengths)\n        x = y"))
    assert "x.copy()" in after


def test_a_number_that_a_test_reads_is_drawn_before() -> None:
    declined(model("told = random.random() < lengths.numel()\n        x = x * told"), "a test reads the number")


@pytest.mark.parametrize("bound", ["self.p", "p"])
def test_a_draw_decides_where_its_bound_is_above_0_by_default(bound: str) -> None:
    source = model(f"if torch.rand(1) < {bound}:\n            x = self.layer(x)").replace("lengths)", "lengths, p=0.5)")
    assert fixed(source)[0] == source


def test_a_draw_decides_nothing_where_its_bound_is_0_by_default() -> None:
    after, _ = fixed(model("if torch.rand(1) < self.drop:\n            x = self.layer(x)"), select=("GM111",))
    assert "self.drop <= 0" in after


def test_integers_that_index_are_no_mask() -> None:
    body = "places = torch.arange(lengths) % self.p\n        x = self.stop[places]"
    noop(model(body), select=("GM411",))


def test_a_mean_beside_a_test_of_the_same_statement_stays() -> None:
    source = model("mask = lengths > 3\n        x = x[mask].mean() if mask.any() else x.sum() * 0")
    declined(source, "`mask.any()` in the same statement breaks the graph too", select=("GM501",))


def test_an_array_of_numpy_is_no_tensor() -> None:
    source = """
        import numpy as np
        import torch
        from torch import nn


        class Model(nn.Module):
            def forward(self, x: torch.Tensor):
                sizes = np.asarray(x.shape)
                if sizes.sum() > 4:
                    x = x * 2
                return x
    """
    declined(source, because="`isinstance(sizes, torch.Tensor)`, which is never so here")


def test_what_is_detached_has_no_flag() -> None:
    body = "x = x.clone().detach().to(lengths.device)\n        x.requires_grad = True\n        x = self.layer(x)"
    declined(model(body), "`x.requires_grad is True`, which is never so")


@pytest.mark.parametrize(
    "body",
    [
        "x = self.held(x.detach())\n        x.requires_grad = True\n        x = self.layer(x)",
        "if lengths is None:\n            x = x.detach()\n        x.requires_grad = True\n        x = self.layer(x)",
        "x = x.detach()\n        for _ in range(2):\n            x.requires_grad = True\n            x = self.layer(x)",
    ],
)
def test_what_may_be_detached_may_have_the_flag(body: str) -> None:
    assert "x.requires_grad is True" in fixed(model(body))[0]
