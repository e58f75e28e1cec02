"""GM802: numbers that the functions of a module hand to each other, and whose value one of them asks for."""

from __future__ import annotations

import pytest

from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed

_TABLES = """
import operator

import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = [0.5, 1.0, 2.0]
        self.register_buffer("steps", torch.tensor([0.5, 1.0, 2.0]))

    def of_tensor(self, n, steps: torch.Tensor):
        return self.steps[n] + steps[n] + (1.0 if n is None else 2.0)

    def forward(self, x: torch.Tensor, n):
        return x * self.scales[n]


class Model(Part):
    def __init__(self):
        super().__init__()
        self.part = Part()

    def plus(self, n):
        return n + 1

    def of_list(self, n):
        return self.scales[self.plus(n) - 1]

    def of_one(self, ns):
        first, *_ = ns
        return self.of_list(n=first)

    def of_test(self, n):
        return 2.0 if n else 1.0

    def of_range(self, n):
        return len(list(range(n)))

    def of_item(self, n):
        return operator.getitem(self.scales, n)

    def forward(self, x: torch.Tensor):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return x * self.of_list(n)",
        "return x * self.of_one(x.long().tolist())",
        "return x * self.of_test(n)",
        "return x * self.of_range(n)",
        "return x * self.of_item(n)",
        "return self.part(x, n)",
        "k = self.plus(n)\n        return x * self.scales[k - 1]",
    ],
)
def test_a_number_that_another_function_looks_something_up_with_is_read_as_before(body: str) -> None:
    source = _TABLES.format(body=body if "tolist" in body else f"n = int(x.argmax())\n        {body}")
    declined(source, "a symbol has no value while Dynamo traces", opaque=True)
    compiles(source, ["torch.tensor([0.0, 2.0, 1.0])", "torch.tensor([0.0, 1.0, 2.0])"], strict=False)


def test_a_number_may_index_a_tensor_elsewhere() -> None:
    after, result = fixed(
        _TABLES.format(body="n = int(x.argmax())\n        return x * self.of_tensor(n, x)"),
        select=("GM802",),
        opaque=True,
    )
    assert result.fixes
    compiles(after, ["torch.tensor([0.0, 2.0, 1.0])", "torch.tensor([0.0, 1.0, 2.0])"], strict=False)
