"""The `weight` that a class inherits from a layer of torch is a parameter; numbers of floats are no symbols."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Base(nn.{layer}):
    pass


class Model(Base):
    def __init__(self):
        super().__init__({given})
        self.register_buffer("counts", torch.tensor([1.5, 2.0]){words})

    def forward(self, x, numbers=None):
        {body}
        return x
"""


def model(body: str, *, layer: str = "Linear", given: str = "3, 3", words: str = "") -> str:
    return _MODEL.format(body=body, layer=layer, given=given, words=words)


def test_a_branch_on_an_inherited_weight_is_a_select() -> None:
    body = "w = self.weight\n        if self.weight.sum() > 100:\n            w = w * 0.5\n        x = x @ w.t()"
    before = model(body)
    after, _ = fixed(before, select=("GM101",))
    assert "isinstance(self.weight, torch.Tensor)" in after
    behaves(before, after, ["torch.ones(2, 3)"], scenarios=FEW_SCENARIOS)
    compiles(after, ["torch.ones(2, 3)"], scenarios=[Scenario(True, "leaves")])


@pytest.mark.parametrize(
    ("layer", "given"),
    [("LayerNorm", "3, elementwise_affine=False"), ("Module", "")],  # its weight is None; it has none
)
def test_a_class_that_may_have_no_weight_tells_nothing(layer: str, given: str) -> None:
    body = "w = self.weight\n        if self.weight.sum() > 100:\n            w = w * 0.5\n        x = x @ w.t()"
    source = model(body, layer=layer, given=given)
    after, _ = fixed(source, select=("GM101",))
    assert after == source


def test_a_number_of_a_parameter_is_no_symbol() -> None:
    source = model("x = x[:, : self.weight.abs().max().item()]")
    declined(source, because="is no whole number", select=("GM802",), opaque=True)


@pytest.mark.parametrize(
    ("read", "asked"),
    [
        ("self.counts[0].item()", "not self.counts.is_floating_point()"),
        ("numbers[0].item()", "not (isinstance(numbers, torch.Tensor) and numbers.is_floating_point())"),
    ],
)
def test_the_path_of_whole_numbers_asks_whether_they_are(read: str, asked: str) -> None:
    source = model(f"count = {read}\n        x = x[:, :count]")
    after, _ = fixed(source, select=("GM802",), opaque=True)
    assert asked in " ".join(after.split())
    assert checked(source, select=("GM802",), opaque=True).findings
