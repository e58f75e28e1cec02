"""Products with a mask that are only made when the mask holds anything but ones."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, mask=None):
        dtype = x.dtype
        x = self.proj(x)
        if mask is not None and not torch.all(mask == 1):
            dtype = x.dtype
            x = (x * mask[:, :, None]).to(dtype)
        return x, dtype
"""
_MASKS = [
    "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.long)",
    "torch.randn(2, 3, 4), torch.tensor([[1, 1, 0], [1, 0, 0]])",
    "torch.randn(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])",
    "torch.randn(2, 3, 4), torch.tensor([[1, 2, 0], [-1, 0, 0]])",
    "torch.full((2, 3, 4), float('nan')), torch.ones(2, 3, dtype=torch.long)",
    "torch.full((2, 3, 4), float('inf')), torch.ones(2, 3, dtype=torch.bool)",
]


def test_products_are_the_same_whatever_the_mask_holds() -> None:
    after, _ = fixed(_MODEL)
    behaves(_MODEL, after, [*_MASKS, "torch.randn(2, 3, 4)"])
    for mask in _MASKS:
        compiles(after, [mask])


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.randn(1, 3, 4), torch.ones(2, 3, dtype=torch.long)",
        "torch.randn(2, 3, 4), torch.ones(2, 3)",
        "torch.randn(2, 3, 4), torch.ones(2, 3, dtype=torch.float64)",
    ],
)
def test_a_product_of_another_shape_or_dtype_keeps_the_test(inputs: str) -> None:
    after, _ = fixed(_MODEL)
    behaves(_MODEL, after, [inputs])
    compiles(after, [inputs], strict=False)


@pytest.mark.parametrize("test", ["not (mask == 1).all()", "torch.any(mask != 1)", "(mask != 1).any()"])
def test_the_test_may_be_spelled_otherwise(test: str) -> None:
    source = _MODEL.replace("not torch.all(mask == 1)", test).replace("mask=None", "mask: 'torch.Tensor | None' = None")
    assert "elif mask is not None" in fixed(source)[0]


@pytest.mark.parametrize("test", ["not torch.all(mask == 0)", "torch.all(mask != 1)", "not torch.any(mask == 1)"])
def test_another_question_is_not_the_one_for_ones(test: str) -> None:
    source = _MODEL.replace("not torch.all(mask == 1)", test)
    assert "GM108" not in {finding.code for finding in checked(source).findings}


def test_a_tensor_that_is_written_to_later_keeps_its_test() -> None:
    declined(_MODEL.replace("return x, dtype", "x.add_(1)\n        return x, dtype"), because="may write in place")


_ALIASED = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask=None):
        y = x.view(-1)
        if mask is not None and not torch.all(mask == 1):
            x = x * mask.unsqueeze(1)
        ...
        return x
"""


@pytest.mark.parametrize(
    "statement",
    [
        "y += 1",
        "z = y\n        z[0] = 1",
        "z, w = x, 1\n        z.add_(w)",
        "nn.functional.relu(x, inplace=True)",
        "torch.relu_(x)",
        "torch.relu(y, out=y)",
        "change = lambda: x.add_(1)",
        "if mask is not None:\n            z = x\n        else:\n            z = x * 2\n        z += 1",
        "for part in x:\n            part.add_(1)",
        "self.kept = x\n        self.kept += 1",
    ],
)
def test_what_is_written_below_keeps_the_test(statement: str) -> None:
    declined(
        _ALIASED.replace("...", statement),
        because=("may write in place to the tensor or a view of it"),
        select=("GM108",),
    )


@pytest.mark.parametrize(
    "statement",
    ["z = y + 1\n        z += 1", "x = x + 1\n        x += y.sum()", "y = torch.relu(y)\n        y.add_(1)"],
)
def test_new_memory_may_be_written(statement: str) -> None:
    after, _ = fixed(_ALIASED.replace("...", statement), select=("GM108",))
    assert "is_compiling" in after


def test_a_state_that_is_read_above_and_written_below_makes_it_a_fix_for_code_without_gradients() -> None:
    source = _MODEL.replace("self.proj = nn.Linear(4, 4)", "self.register_buffer('scale', torch.ones(4))")
    source = source.replace("self.proj(x)", "x * self.scale.exp()")
    source = source.replace("return x, dtype", "self.scale.mul_(0.9)\n        return x, dtype")
    after, _ = fixed(source)
    assert "and not torch.is_grad_enabled()" in after
    behaves(source, after, [*_MASKS, "torch.randn(2, 3, 4)"])
    compiles(after, [_MASKS[1]], scenarios=[Scenario(gradients="off")])
    compiles(after, [_MASKS[1]], strict=False)
