"""Numbers and flags that are read out of tensors and tested: names hold the tensors, and other fixes mend the tests."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor):
        {body}
"""
_SCENARIOS = [Scenario(), Scenario(True, "leaves")]
_INPUTS = [
    "(torch.tensor([1.0, 4.0, -2.0]), torch.tensor([1.0, 0.0, 3.0]))",
    "(torch.tensor([1.0, 0.1, -0.25]), torch.zeros(3))",
    "(torch.tensor([0.1, 0.1, 0.1]), torch.tensor([0.1, 0.1, 0.1]))",
    "(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([float('nan'), 1.0, 1.0]))",
    "(torch.tensor([1.0, 4.0, -2.0], dtype=torch.bfloat16), torch.tensor([0.1, 0.0, 0.1], dtype=torch.bfloat16))",
]


_FAILING = [
    "(torch.tensor([1.0, 4.0, -2.0]), torch.tensor([float('nan'), float('inf'), 1.0]))",
    "(torch.tensor([1.0, 4.0, -2.0]), torch.tensor([-10.0, 10.0, 1.0]))",
]


def model(body: str) -> str:
    return _MODEL.format(body="\n        ".join(body.strip("\n").split("\n")))


@pytest.mark.parametrize(
    "body",
    [
        "n = (t > 0).sum().item()\nif n > 0:\n    x = x * 2\nreturn x",
        "n = int((t > 0).sum())\nif n == 0:\n    return x\nreturn x * 2",
        "n = int(t.long().sum())\nif n == 0:\n    return x\nreturn x * 2",
        "m = t.max().item()\nif m > 0.1:\n    x = x * 2\nreturn x",
        "m = t.max().item()\nif m >= 0.1:\n    x = x * 2\nelse:\n    x = x * 3\nreturn x + 1",
        "m = float(t.mean())\ny = x * 3 if not m < 0.1 else x\nreturn y",
        "any_left = (t > 0).any().item()\nif any_left:\n    x = x * 2\nreturn x",
        "empty = not bool((t > 0).any())\nif not empty:\n    x = x * 2\nelse:\n    x = x - 1\nreturn x",
        "same = torch.equal(x, t)\nif same:\n    x = x * 2\nreturn x",
        "close = torch.allclose(x, t)\nreturn x if close else x * 2",
        "empty = not (t > 0).any()\nif empty:\n    x = x * 2\nreturn x",
        "empty = t.numel() == 0 or not (t > 0).any()\nreturn x if empty else x * 2",
        "some = self.training and (t > 0).any()\nif some:\n    x = x * 2\nreturn x + 1",
        "some = t is not None and t.max() > 0.5 and x.sum() > 0\nif some:\n    x = x * 2\nreturn x",
        "inside = 0 < t.max() < 2\nif inside:\n    x = x * 2\nelse:\n    x = x + 1\nreturn x",
        "above = t.max().item() > 0.5\nif above:\n    x = x + 2\nreturn x",
        "n = (t > 0).sum().item()\nif n > 1:\n    x = x * 2\nif n == 0:\n    x = x - 1\nreturn x",
    ],
)
def test_a_test_further_down_gives_what_eager_mode_gives(body: str) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "# A 0-dim tensor: its " in after
    behaves(source, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=_SCENARIOS)


@pytest.mark.parametrize(
    "body",
    [
        "bad = torch.isnan(t).any().item()\nif bad:\n    raise ValueError('nan')\nreturn x",
        "some = bool((t > 0).any())\nif some and not bool((t > 0).all()) and x.shape[1:] != t.shape[1:]:\n"
        "    raise ValueError('shapes')\nreturn x * 2 if some else x",
        "low = t.min().item() < -9\nhigh = t.max().item() > 9\nif low or high:\n    raise ValueError\nreturn x",
        "bad = t.isnan().any() or t.isinf().any()\nif bad:\n    raise ValueError('bad')\nreturn x",
        "good = bool((t < 9).all())\nassert good, 'too large'\nreturn x * 2",
        "m = t.max().item()\nassert m < 9.5, 'too large'\nreturn x * 2",
    ],
)
def test_a_check_further_down_fails_in_compiled_code_too(body: str) -> None:
    source = model(body)
    after, _ = fixed(source)
    assert "# A 0-dim tensor: its " in after
    behaves(source, after, [*_INPUTS, *_FAILING], scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS[:3], scenarios=_SCENARIOS)
    compiles(after, _FAILING, strict=False, scenarios=_SCENARIOS)


_FLAG = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("made", torch.tensor(False))
        self.register_buffer("number", torch.tensor(0.25))

    def forward(self, x: torch.Tensor, t: torch.Tensor):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "made = bool(self.made)\nself.made.fill_(True)\nif not made:\n    x = x * 2\nreturn x",
        "number = self.number.item()\nself.number.mul_(3)\nif number > 0.5:\n    x = x * 2\nreturn x",
        "flag = (t > 0).any()\nkept = bool(flag)\nflag.logical_not_()\nif kept:\n    x = x * 2\nreturn x",
    ],
)
def test_what_is_written_before_the_test_does_not_count(body: str) -> None:
    source = _FLAG.format(body="\n        ".join(body.split("\n")))
    after, _ = fixed(source)
    assert "# A 0-dim tensor: its " in after
    behaves(source, after, _INPUTS[:3], scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS[:3], strict=False, scenarios=[*_SCENARIOS, Scenario(False, "off")])


@pytest.mark.parametrize(
    "body",
    [
        "m = t.max().item()\nif m > -1:\n    x = x * 2\nreturn x",
        "m = int(t.max())\nif m > 200:\n    x = x * 2\nreturn x",
        "m = t.max().item()\nif m > 200:\n    raise ValueError\nreturn x * 2",
        "if t.max().item() > 200:\n    x = x * 2\nreturn x",
        "if t.min().item() > -1:\n    return x * 2\nreturn x",
    ],
)
def test_a_number_that_the_dtype_does_not_hold_compares_as_in_python(body: str) -> None:
    source = model(body)
    after, _ = fixed(source)
    kinds = ("uint8", "int8", "int64", "float32")
    inputs = [f"(torch.tensor([1.0, 4.0, -2.0]), torch.tensor([1, 2, 3], dtype=torch.{kind}))" for kind in kinds]
    behaves(source, after, inputs, scenarios=[Scenario()])
    compiles(after, inputs, strict=False, scenarios=[Scenario()])


_ONE_ELEMENT = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("number", torch.full((1,), 2.0))
        self.register_buffer("count", torch.ones(1, dtype=torch.long))

    def forward(self, x: torch.Tensor):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "n = self.number.item()\nreturn x.sum() / n",
        "n = max(self.number.item(), 1)\nreturn x.sum() * n",
        "n = self.number.item()\ny = x.sum()\nif n > 1:\n    y = y / n\nreturn y",
        "n = int(self.count)\ny = x.sum()\nif n > 0:\n    y = y * 2\nreturn y",
        "return x.sum().clamp(max=self.number.item())",
    ],
)
def test_a_number_has_no_dimensions_though_its_buffer_has_one(body: str) -> None:
    source = _ONE_ELEMENT.format(body="\n        ".join(body.split("\n")))
    after, _ = fixed(source)
    assert after != source
    inputs = ["torch.tensor([1.0, 4.0, -2.0])", "torch.tensor(3.0)"]
    behaves(source, after, inputs, scenarios=FEW_SCENARIOS)
    compiles(after, inputs, strict=False, scenarios=_SCENARIOS)


_NUMBERS = """
class Numbers:
    def __init__(self, number):
        self.number = number

    def sum(self):
        return self

    def item(self):
        return self.number
"""


def test_an_annotation_that_is_wrong_costs_no_more_than_before() -> None:
    source = model("n = t.sum().item()\nif n > 2:\n    x = x * 2\nreturn x") + _NUMBERS
    after, _ = fixed(source)
    assert "isinstance(n, torch.Tensor)" in after
    inputs = ["(torch.ones(3), Numbers(3))", "(torch.ones(3), Numbers(1))"]
    behaves(source, after, inputs, scenarios=[Scenario()])
    compiles(after, inputs, scenarios=[Scenario()])


def test_a_tensor_written_in_place_before_the_test_keeps_its_number() -> None:
    source = model("m = t[0].item()\nx.mul_(2)\nt.add_(5)\nif m > 0.5:\n    x = x / 4\nreturn x")
    after, _ = fixed(source)
    behaves(source, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, strict=False, scenarios=_SCENARIOS)


@pytest.mark.parametrize(
    "body",
    [
        "n = (t > 0).sum().item()\nif n > 0:\n    print(n)\nreturn x",
        "n = (t > 0).sum().item()\nif n > 0:\n    x = x * 2\nreturn x, n",
        "n = (t > 0).sum().item()\nfor _ in range(n):\n    x = x * 2\nif n > 1:\n    x = x - 1\nreturn x",
        "n = (t > 0).sum().item()\nwhile n > 0:\n    x = x * 2\n    break\nreturn x",
        "flag = bool((t > 0).any())\nself.flag = flag\nif flag:\n    x = x * 2\nreturn x",
    ],
)
def test_another_use_of_the_number_keeps_it(body: str) -> None:
    source = model(body)
    after, _ = fixed(source, select=("GM401",))
    assert after == source


_COMPARED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, classes=300, small=-1, large=70000.0, least=0.1):
        super().__init__()
        self.classes, self.small, self.large, self.least = classes, small, large, least

    def forward(self, x: torch.Tensor, labels):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "if labels.max().item() >= self.classes:\n    raise ValueError\nreturn x",
        "if labels.max().item() >= self.classes:\n    x = x * 2\nreturn x",
        "if torch.max(labels).item() == self.classes:\n    return x * 2\nreturn x",
        "assert self.small < labels.min().item()\nreturn x",
        "assert labels.max().item() != x.size(0)\nreturn x",
        "if (labels.float() * 0.1).max().item() > self.least:\n    x = x * 2\nreturn x",
        "if int(labels.max()) < self.large:\n    return x * 2\nreturn x",
        "if labels.max().item() > self.large:\n    return x * 2\nreturn x",
        "if labels.max().item() > 0.1:\n    return x * 2\nreturn x",
    ],
)
def test_a_number_compares_with_a_name_as_in_python(body: str) -> None:
    source = _COMPARED.format(body="\n        ".join(body.split("\n")))
    after, _ = fixed(source)
    assert "is_compiling" in after
    integers = [("uint8", "1, 44, 200"), ("int8", "1, 44, 100"), ("int16", "1, 2, 4464"), ("int64", "0, 5, 300")]
    floats = [("float16", "1.0, 2.0, float('inf')"), ("float32", "0.1, 0.1, 0.1"), ("bfloat16", "0.1, 300.0, 0.0")]
    inputs = [f"(torch.ones(300), torch.tensor([{given}], dtype=torch.{kind}))" for kind, given in integers + floats]
    behaves(source, after, inputs, scenarios=[Scenario()])
    compiles(after, inputs, strict=False, scenarios=[Scenario()])
