"""Products with a mask that are only made when the mask holds anything but ones."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed

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
    declined(_MODEL.replace("return x, dtype", "x.add_(1)\n        return x, dtype"), because="may write into")
