"""GM111: what Python knows is asked before a tensor, and nothing else changes, random numbers included."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layerdrop=0.0, check=False):
        super().__init__()
        self.layerdrop = layerdrop
        self.check = check
        self.seen = 0
        self.dropout = nn.Dropout(0.5)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def count(self):
        self.seen += 1
        return False

    def forward(self, x: torch.Tensor, flag=None):
        {body}
        return self.dropout(x)


def make_dropping():
    return Model(layerdrop=0.5)
"""
_TRAINING = (Scenario(True, "leaves"), Scenario(False, "off"))
_LAYERS = """for layer in self.layers:
            {draw}
            {test}
                continue
            x = layer(x)"""


def model(body: str) -> str:
    return _MODEL.format(body=body.strip())


@pytest.mark.parametrize(
    ("draw", "test"),
    [
        ("p = torch.rand([])", "if self.training and (p < self.layerdrop):"),
        ("p = torch.rand([])", "if not (not self.training or self.layerdrop <= p):"),
        ("p = random.uniform(0, 1)", "if self.training and p < self.layerdrop:"),
        ("pass", "if self.training and torch.rand(()) < self.layerdrop:"),
        ("pass", "if self.training and random.random() < self.layerdrop * 0.5:"),
        ("skip = self.training and torch.rand([]) < self.layerdrop", "if skip:"),
    ],
)
def test_a_layer_that_is_never_dropped_breaks_nothing_and_draws_as_often(draw: str, test: str) -> None:
    before = model(_LAYERS.format(draw=draw, test=test))
    after, _ = fixed(before)
    assert after != before
    behaves(before, after, ["torch.ones(2, 4)"], scenarios=_TRAINING)
    behaves(before, after, ["torch.ones(2, 4)"] * 2, name="make_dropping", scenarios=_TRAINING)
    # Dropout behind the loop tells whether a draw was left out.
    compiles(after, ["torch.ones(2, 4)"], scenarios=_TRAINING)


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 3 and self.check:\n            x = self.layers[0](x)",
        "if x.sum() > 3 and flag:\n            x = self.layers[0](x)",
        "x = self.layers[0](x) if (x < 0).any() and self.check is True else x",
        "if not (x.sum() <= 3 or not self.check):\n            x = self.layers[0](x)",
        "assert (x > 0).all() or not self.check, f'low: {x}'",
        "while (x.norm() > 1) and self.check and flag is not None:\n            x = self.layers[0](x)",
    ],
)
def test_a_flag_behind_a_tensor_is_asked_first(body: str) -> None:
    before = model(body)
    after, _ = fixed(before)
    behaves(before, after, ["torch.ones(2, 4)", "(torch.ones(2, 4), True)"], scenarios=_TRAINING)
    compiles(after, ["torch.ones(2, 4)"], scenarios=_TRAINING)


@pytest.mark.parametrize(
    "body",
    [
        "if x.add_(1).sum() > 3 and self.check:\n            x = self.layers[0](x)",
        "if self.dropout(x).sum() > 3 and self.check:\n            x = self.layers[0](x)",
        "if x.sum() > 3 and self.count() and self.check:\n            x = self.layers[0](x)",
        "if x.sum() > 3 and flag is not None and flag.ready:\n            x = self.layers[0](x)",
        "p = torch.rand([])\n        p -= 1\n        if p < self.layerdrop:\n            x = self.layers[0](x)",
        "p = torch.rand([])\n        self.count(p)\n        if p < self.layerdrop:\n            x = self.layers[0](x)",
        "p = torch.rand([]) - 1\n        if p < self.layerdrop:\n            x = self.layers[0](x)",
        "p = torch.rand([])\n        if p <= self.layerdrop:\n            x = self.layers[0](x)",
        "skip = torch.rand([]) < self.layerdrop\n        x = x * (~skip)",
        "skip = torch.rand([]) < self.layerdrop\n        x = x * skip\n        if skip:\n            x = -x",
        "skip = torch.rand([]) < self.layerdrop\n        x = x + 1 if (skip & skip) else x",
        "skip = other = torch.rand([]) < self.layerdrop\n        if skip:\n            x = x * other",
        "skip, x = torch.rand([]) < self.layerdrop, x\n        if skip:\n            x = self.layers[0](x)",
    ],
)
def test_a_test_that_does_more_or_decides_less_keeps_its_text(body: str) -> None:
    before = model(body)
    after, _ = fixed(before, select=("GM111",))
    assert "self.layerdrop <= 0" not in after
    assert "not self.check)" not in after


def test_what_comes_behind_the_deciding_operand_is_not_asked_for() -> None:
    body = """if x.sum() > 0 and flag is not None and flag > 0:
            x = self.layers[0](x)"""
    before = model(body)
    after, _ = fixed(before)
    assert "not (torch.compiler.is_compiling() and flag is None)" in after
    behaves(before, after, ["torch.ones(2, 4)", "torch.ones(2, 4), 1", "torch.ones(2, 4), torch.tensor(1)"])
    compiles(after, ["torch.ones(2, 4)"])


def test_a_long_condition_is_written_on_lines_of_its_own() -> None:
    body = """if y.amax() > 9 and y.amin() < 5 and self.check and self.layerdrop is not None and flag is None:
            x = self.layers[0](x)"""
    after, _ = fixed(model("y = x * 2\n        " + body))
    assert "            not (\n                torch.compiler.is_compiling()\n" in after
    assert max(map(len, after.splitlines())) <= 120


_FLAG = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, clip=False):
        super().__init__()
        self.clip = {clip}

    def forward(self, x: torch.Tensor):
        y = x + 1
        if {test}:
            y = x * 3
        return y * 2
"""


@pytest.mark.parametrize(
    ("clip", "test"),
    [("clip", "(x > 0).any() and self.clip"), ("True", "(x > 0).any() or self.clip")],
)
def test_a_flag_that_decides_leaves_no_break_whatever_else_is_selected(clip: str, test: str) -> None:
    source = _FLAG.format(clip=clip, test=test)
    after, _ = fixed(source)
    compiles(after, ["torch.ones(2, 4)"])


def test_what_a_test_raises_is_raised_where_its_flag_is_not_set() -> None:
    after, _ = fixed(_FLAG.format(clip="clip", test="x.max() > 5 and self.clip"))
    compiles(after, ["torch.ones(0, 4)"], strict=False)


def test_a_draw_that_is_not_traced_under_its_own_name_is_left_alone() -> None:
    source = _MODEL.format(body="if random() < self.layerdrop:\n            x = x * 2")
    declined(source.replace("import random", "from random import random"), "import `random` itself")


_FLAGGED = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.flag = flag

    def forward(self, x: torch.Tensor):
        if x.isnan().any() or self.flag:
            x = x * 2.0
        x = x * 3.0 if self.flag or x.sum() > 0 else x
        if x.isnan().any() or (
            self.flag
        ):
            x = x - 1.0
        return x * 1.0


def make_unset():
    return Model(flag=False)
"""


def test_what_python_knows_is_asked_behind_a_compile_path_whose_header_it_may_fail() -> None:
    after, _ = fixed(_FLAGGED)
    behaves(_FLAGGED, after, ["torch.ones(2, 4)", "torch.full((2, 4), float('nan'))"])
    for made in ("Model", "make_unset"):
        compiles(after, ["torch.ones(2, 4)"], name=made)
    assert "or x.isnan().any() or self.flag" in after
    assert fixed(after)[0] == after


_DRAWN = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, rate=None):
        x = x.softmax(-1)
        if rate is not None and torch.rand(1) < rate:
            x = torch.ones_like(x) / 3
        return x * 1.0
"""


def test_a_draw_is_not_asked_for_behind_the_compile_path_of_another_rule() -> None:
    after, _ = fixed(_DRAWN)
    assert "torch.where(" in after
    assert after.count("torch.rand(1)") == 2
    behaves(_DRAWN, after, ["torch.ones(2, 4), 0.5", "torch.ones(2, 4), 0.0", "torch.ones(2, 4)"])
    compiles(after, ["torch.ones(2, 4), 0.5"], scenarios=[Scenario(False, "off")])
    assert fixed(after)[0] == after
