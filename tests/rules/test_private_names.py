"""Attributes with two underscores in front: Python finds them under another name outside of the text of their class."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, embedded, fixed

_SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.__lstm = nn.LSTM(4, 4, batch_first=True)
        self.__scale = 2.0
        self.register_buffer("ready", torch.tensor(0, dtype=torch.uint8))
        self.__loc = nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor):
        ...
"""


@pytest.mark.parametrize(
    "body",
    [
        "return self.__lstm(x)[0]",
        "if self.training and self.ready.item() == 0:\n"
        "    self.__loc.data.copy_(x.mean((0, 1)))\n    self.ready.fill_(1)\n"
        "    print(x.shape)\nreturn x + self.__loc",
    ],
)
def test_no_code_outside_of_the_class_asks_for_them(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, opaque=True)[0]
    outside = text[: text.index("class Model")]
    assert "__lstm" not in outside
    assert "__loc" not in outside
    compiles(text, ["torch.randn(2, 3, 4)"], strict=False)


def test_the_reason_says_what_to_do() -> None:
    source = embedded("return self.__lstm(x)[0]", _SOURCE)
    declined(source, because="`__lstm` is a private name", opaque=True)


def test_in_the_text_of_the_class_they_are_what_they_are() -> None:
    source = embedded("if x.sum() > 0:\n    x = x * self.__scale\nreturn x", _SOURCE)
    text = fixed(source, select=("GM101",))[0]
    assert "self.__scale, (int, float)" in text
    behaves(source, text, ["torch.ones(2, 3, 4)", "-torch.ones(2, 3, 4)"], scenarios=FEW_SCENARIOS[:2])
    compiles(text, ["torch.ones(2, 3, 4)", "-torch.ones(2, 3, 4)"])
