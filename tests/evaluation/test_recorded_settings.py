"""`fix --trace --opaque`: statements that read numbers of an instance of which other parts may change."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluation.recorded_fixes import Recorded, calls_of, model_with, one_graph

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]
_BEFORE = """
@torch.compiler.disable
def outside(x, count):
    return x * count


def scale_of(other):
    return other.scale[0]


def fill(other):
    other.count = 5


def attend(layer, x):
    return layer.weight(x)


TABLE = {"plain": attend}


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.kind, self.weight = "plain", nn.Linear(4, 4)

    def forward(self, x):
        return TABLE[self.kind](self, x)
"""
_INIT = "self.count, self.other, self.net = 2, 1, nn.Linear(4, 4)"
_MORE = """
        self.register_buffer("scale", torch.ones(4))
        self.parts = nn.ModuleList([Part(), Part()])
"""


def _recorded(folder: Path, change: str, read: str = "self.count") -> Recorded:
    lines = change.replace("\n", "\n    ")
    body = f"if rest:\n    {lines}\ny = outside(x, {read})\nreturn y + 1"
    source = model_with(body, _BEFORE, init=_INIT).replace(_INIT + "\n", _INIT + _MORE)
    return Recorded(folder, source, calls_of((3, 4), (5, 4)), gradients=False)


@pytest.mark.parametrize(
    "change",
    [
        "self.scale.mul_(2)",
        "self.other = 3",
        "for part in self.parts:\n    x = part(x)",
    ],
)
def test_other_parts_of_the_instance_may_change(tmp_path: Path, change: str) -> None:
    """A layer that hands itself to a function of which nothing is known changes no number of another object."""
    found = _recorded(tmp_path, change)
    assert "2 recorded calls" in found.reasons, found.reasons
    with torch.no_grad():
        for more in [(), (1,)]:
            x = torch.ones(4, 4)
            assert torch.equal(one_graph(found.model(), x, *more), found.model()(x, *more))


@pytest.mark.parametrize(
    "change",
    [
        "self.count += 1",
        "me = self\nme.count = 4",
        "setattr(self, 'count', 3)",
        "self.__dict__['count'] = 3",
        "vars(self)['count'] = 3",
        "fill(self)",
        "TABLE['plain'](self, x)",
        "self.parts[0].count = 3",
        "self.net.count = 3",
    ],
)
def test_a_number_that_may_change_is_left_alone(tmp_path: Path, change: str) -> None:
    found = _recorded(tmp_path, change)
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons


@pytest.mark.parametrize(
    "read", ["self.scale", "self.net.weight[0]", "self.count + self.scale", "scale_of(self) * self.count"]
)
def test_a_tensor_that_may_change_is_left_alone(tmp_path: Path, read: str) -> None:
    found = _recorded(tmp_path, "self.scale.mul_(2)\nself.net.weight.mul_(2)", read)
    assert found.after == found.before, found.after
    assert "in the same graph" in found.reasons, found.reasons
