"""What two floating tensors of unknown dtypes make is floating, whichever of them is wider."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from graphmend_codemod.analysis.interpreter import Evaluator
from graphmend_codemod.analysis.values import FreshNames
from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_COMPILED = (Scenario(gradients="off"),)
_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, t: torch.Tensor):
        if t == 0:
            return x * 1
        z = x + (y - x) * t
        return {last}
"""
_PASSING = ["torch.ones(3), torch.zeros(3), torch.tensor(0.0)", "torch.ones(3), torch.zeros(3), torch.tensor(0.5)"]
_OTHERS = [
    "torch.ones(3), torch.zeros(1), torch.tensor(0.5)",
    "torch.ones(1), torch.zeros(3), torch.tensor(0.5)",
    "torch.ones(3), torch.zeros(3).double(), torch.tensor(0.5)",
    "torch.ones(3).long(), torch.zeros(3).bool(), torch.tensor(2)",
    "torch.ones(3).bool(), torch.zeros(3).bool(), torch.tensor(True)",
    "torch.ones(3) * 1j, torch.zeros(3), torch.tensor(0.5)",
]


@pytest.mark.parametrize("last", ["torch.clamp(z, 0, 1)", "z.sigmoid()"])
def test_an_early_return_beside_a_clamped_sum_is_selected(last: str) -> None:
    source = _SOURCE.replace("{last}", last)
    after, _ = fixed(source)
    assert "x.is_floating_point()" in after
    assert "torch.where(" in after
    behaves(source, after, [*_PASSING, *_OTHERS])
    compiles(after, _PASSING, scenarios=_COMPILED)


@pytest.mark.parametrize("other", [None, "torch.int64", "torch.complex64", "torch.bool"])
def test_a_sum_with_a_tensor_of_another_kind_is_of_unknown_dtype(other: str | None) -> None:
    names = FreshNames()
    evaluator = cast("Evaluator", SimpleNamespace(names=names, broadcast=lambda values: None))
    floating, unknown = names.tensor("float:dtype#9"), names.tensor(other)
    for left, right in ((floating, unknown), (unknown, floating)):
        assert not Evaluator.arithmetic(evaluator, left, right, None).is_floating
    assert Evaluator.arithmetic(evaluator, floating, names.tensor("torch.float16"), None).is_floating
