"""Numbers read of positions that the module counts: who may get a range in the place of the tensor."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

_MODEL = """
import torch
from torch import nn


class Mixer(nn.Module):
    def forward(self, x: torch.Tensor, cache=None, positions=None):
        return self.mix(x, cache, positions)

    def mix(self, x: torch.Tensor, cache=None, positions=None):
        if cache is not None and positions is not None and positions[0] > 0:
            return x * 3
        if not positions[-1] > 2:
            x = x - 1
        return x + 1


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixer = Mixer()

    def forward(self, x, cache=None, positions=None):
        return self.mixer(x, cache=cache, positions=positions)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
        self.kernel = 4
        self.checkpointing = False

    def forward(self, x, cache=None, positions=None):
        if cache is None:
            cache = [x]
            positions = torch.arange(1, self.kernel, device=x.device)
        for layer in self.layers:
            if self.checkpointing and self.training:
                x = self.checkpoint(layer.__call__, x, cache, positions)
            else:
                x = layer(x, cache, positions=positions)
        return x
"""


def found(source: str) -> dict[bool, list[str]]:
    """The reasons of what is declined, and messages of what is not, of this rule alone."""
    findings = [each for each in checked(source).findings if each.code == "GM402"]
    return {
        fixable: [each.declined or each.message for each in findings if each.fixable is fixable]
        for fixable in (True, False)
    }


def test_numbers_are_counted_in_a_range_down_to_the_last_reader() -> None:
    after, _ = fixed(_MODEL, select=("GM402",))
    assert "torch.compiler.is_compiling()" in after
    assert "and not (self.checkpointing and self.training)" in after
    assert "positions = range(1, self.kernel)" in after
    behaves(_MODEL, after, ["torch.ones(3)", "torch.ones(2), [1], torch.tensor([0, 5])"])
    compiles(after, ["torch.ones(3)", "torch.ones(4)"])
    assert fixed(after, select=("GM402",))[0] == after


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("return x + 1", "return x + positions.sum()", "`positions.sum` in `Mixer.mix` may need a Tensor"),
        ("return x + 1", "return x + positions[0]", "may need a Tensor"),
        ("return x + 1", "positions += 1\n        return x", "binds `positions` again"),
        ("return x + 1", "return (lambda: positions)() + x", "a function nested in `Mixer.mix` uses"),
        ("positions[0] > 0", "positions[0] > x.sum()", "may need a Tensor"),
        ("self.checkpointing and self.training", "cache is None", "`self.checkpoint(layer.__call__"),
        ("x = layer(x", "self.checkpointing = True\n                x = layer(x", "may need a Tensor"),
        ("self.kernel, device", "x.shape[0], device", "may be a size"),
        ("device=x.device)", "dtype=torch.float32)", "does not count in integers"),
        ("cache = [x]", "cache = [x]\n            range = None", "uses the name `range` for something else"),
    ],
)  # fmt: skip
def test_positions_that_may_be_needed_as_a_tensor_stay_one(old: str, new: str, reason: str) -> None:
    assert old in _MODEL
    result = found(_MODEL.replace(old, new))
    assert not result[True]
    assert result[False]
    assert all(reason in each for each in result[False]), result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def mix", "    @torch.no_grad()\n    def mix"),
        ("self.mixer = Mixer()", "self.mixer = Mixer() if x else Other()"),
        ("self.mixer = Mixer()", "self.mixer = Mixer()\n\n    mix = None\n    forward = None"),
        ("class Model(", "class Heir(Mixer):\n    def mix(self):\n        ...\n\n\nclass Model("),
    ],
)
def test_positions_that_may_go_to_another_function_stay_a_tensor(old: str, new: str) -> None:
    assert old in _MODEL
    source = _MODEL.replace(old, new)
    assert fixed(source, select=("GM402",))[0] == source
    messages = [each.message for each in checked(source).findings]
    assert sum("data-dependent" in each for each in messages) == 2


def test_positions_that_are_only_given_are_no_business_of_the_rule() -> None:
    assert found(_MODEL.replace("positions = torch.arange(1, self.kernel, device=x.device)", "pass")) == {
        True: [],
        False: [],
    }
