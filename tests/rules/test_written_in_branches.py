"""Branches of which no call runs both, where a fix would make one graph of a read and a write in place."""

from __future__ import annotations

import pytest

from tests.rules.written_models import MODEL, SELECT
from tests.tools.fixes import fixed

_BRANCHES = """if self.counts[0]:
            {first}
        {second}
        if x.sum() > 0:
            x = x * 2.0
        return x + y"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("self.scale.mul_(0.5)\n            return x", "y = x * self.scale.exp()"),
        ("self.scale.mul_(0.5)\n            raise ValueError(x.shape)", "y = x * self.scale.exp()"),
        ("self.scale.mul_(0.5)\n            y = x\n        else:", "    y = x * self.scale.exp()"),
    ],
)
def test_what_no_call_both_writes_and_reads_is_for_all_code(first: str, second: str) -> None:
    after, _ = fixed(MODEL.format(body=_BRANCHES.format(first=first, second=second), inner="pass"))
    assert "torch.where(" in after
    assert "is_grad_enabled" not in after


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("self.scale.mul_(0.5)\n            y = x", "y = x * self.scale.exp()"),
        (
            "self.scale.mul_(0.5)\n            if len(self.counts) > 1:\n                return x",
            "y = x * self.scale.exp()",
        ),
        ("with torch.no_grad():\n                self.scale.mul_(0.5)", "y = x * self.scale.exp()"),
    ],
)
def test_a_branch_that_may_go_on_below_is_for_code_without_gradients(first: str, second: str) -> None:
    after, _ = fixed(MODEL.format(body=_BRANCHES.format(first=first, second=second), inner="pass"))
    assert "not torch.is_grad_enabled()" in after


_METHOD = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))

    def chosen(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() > 1:
            self.scale.mul_(0.5)
            return x * 3.0
        if x.sum() > 0:
            x = x * 2.0
        return x * self.scale.exp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.chosen(x) + x
"""


def test_what_no_call_both_writes_and_reads_is_so_for_callers() -> None:
    after, _ = fixed(_METHOD)
    assert "torch.where(" in after
    assert "is_grad_enabled" not in after
    assert "not torch.is_grad_enabled()" in fixed(_METHOD.replace("            return x * 3.0\n", ""))[0]


def test_branches_of_one_if_run_in_different_rounds_of_a_loop() -> None:
    lines = (
        "if number:",
        "    y = x * self.scale.exp()",
        "else:",
        "    self.scale.mul_(0.5)",
        SELECT.replace("\n", "\n    "),
    )
    loop = "".join(f"\n            {line}" for line in lines)
    source = MODEL.format(body=f"y = x\n        for number in range(2):{loop}\n        return x + y", inner="pass")
    assert "not torch.is_grad_enabled()" in fixed(source)[0]


_CHOSEN = """
import torch
from torch import nn


class Plain(nn.Module):
    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h


class Written(nn.Module):
    def forward(self, h: torch.Tensor) -> torch.Tensor:
        y = h.sin()
        if y.sum() > 0:
            y = y * 2.0
        h.mul_(0.5)
        return y * h


class Model(nn.Module):
    def __init__(self, plain: bool = False):
        super().__init__()
        if plain:
            self.layer = Plain()
        else:
            self.layer = Written()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = {given}
        return self.layer(h)
"""


@pytest.mark.parametrize(("given", "asked"), [("x + 1.0", False), ("x", True), ("x.view(-1)", True), ("x[1:]", True)])
def test_a_layer_that_may_be_of_several_classes_is_given_what_its_caller_makes(given: str, asked: bool) -> None:
    after, _ = fixed(_CHOSEN.replace("{given}", given))
    assert "torch.where(" in after
    assert ("not torch.is_grad_enabled()" in after) is asked
