"""GM102: an early return with a few assignments behind it."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def count(self, x):
        self.calls += 1
        return x

    def forward(self, x: torch.Tensor, t=None):
        {body}
"""
_INPUTS = ["torch.ones(3)", "torch.zeros(3)", "torch.tensor([2.0, 0.0, -1.0])"]
_OFF = Scenario(False, "off")


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    ("body", "scenario"),
    [
        (
            "if x.abs().max() < 1e-6:\n            return x\n"
            "        y = x * 2\n        z = y + x\n        return torch.tanh(z)",
            Scenario(True, "leaves"),
        ),
        (
            "n = x.norm()\n        if n == 0:\n            return torch.zeros_like(x)\n"
            "        x = x / n\n        x = x * 3\n        return x",
            _OFF,
        ),
        (
            "if x.sum() > 9:\n            return x - 1\n        elif x.sum() < 1:\n            return -x\n"
            "        else:\n            y = x.exp()\n            return y / 2",
            Scenario(True, "leaves"),
        ),
    ],
)
def test_what_comes_before_the_last_return_is_computed_in_any_case(body: str, scenario: Scenario) -> None:
    before = model(body)
    after, _ = fixed(before, select=("GM102",))
    assert "is_compiling()" in after
    behaves(before, after, _INPUTS)
    compiles(after, _INPUTS, scenarios=[scenario])
    compiles(after, _INPUTS, scenarios=[Scenario(True, "leaves")], strict=False)


@pytest.mark.parametrize(
    ("rest", "because"),
    [
        ("y = self.count(x) * x\n        return y", "may have side effects"),
        ("y = self.count(x)\n        y = x * 2\n        return y", "that nothing reads"),
        ("y = x.clone()\n        z = y.add_(1)\n        return z", "writes in place"),
        ("y = x * 2\n        return y.sum()", "may have a different shape in each branch"),
        ("y = x\n        return [y for _ in range(2)]", "runs between the branch and the last `return`"),
        ("y = x\n        y += 1\n        return y", "runs between the branch and the last `return`"),
        ("y = x.double()\n        return y * 2", "dtype"),
        ("y = x * 2\n        self.kept = lambda: y\n        return y", "may be read by another function"),
        ("y = x * 2\n        return y\n        self.kept = lambda: y", "may be read by another function"),
    ],
)
def test_what_eager_mode_may_skip_has_to_be_free_of_effects(rest: str, because: str) -> None:
    declined(model(f"if x.sum() > 0:\n            return x + 1\n        {rest}"), because, select=("GM102",))


def test_a_global_is_not_assigned_where_eager_mode_returns_before() -> None:
    body = "global last\n        if x.sum() > 0:\n            return x + 1\n        last = x * 2\n        return last"
    declined(model(body), because="may be read by another function", select=("GM102",))
