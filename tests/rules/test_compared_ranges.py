"""GM411: masks that compare a range of integers with one, `x[:, torch.arange(n) != k]`."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = 1

    @property
    def next_position(self):
        self.position += 1
        return self.position

    def forward(self, x, k=1, n=None):
        n = x.shape[1] if n is None else n
        y = {body}
        return y.exp()
"""
_MODES = (Scenario(True, "leaves"), Scenario(False, "off"))
_KNOWN = "# The size is known without reading the tensor."


def model(body: str) -> str:
    return _MODEL.format(body=body)


@pytest.mark.parametrize(
    "body",
    [
        "x[:, torch.arange(n) != k]",
        "x[:, torch.arange(x.shape[1]) == k, :]",
        "x[torch.arange(0, x.size(0), device=x.device) <= k - 1]",
        "x[:, torch.arange(n - 1 + 1, device=None) < -k]",
        "x[..., 0] if n > 9 else x[:, torch.arange(n) > self.position, :]",
    ],
)
def test_python_says_which_elements_a_compared_range_chooses(body: str) -> None:
    before = model(body)
    after, _ = fixed(before)
    assert "for each in range(" in after
    inputs = ["torch.randn(2, 3, 2)", "torch.randn(2, 3, 2), -100", "torch.randn(2, 1, 2), 0"]
    behaves(before, after, inputs)
    compiles(after, inputs, scenarios=_MODES)


@pytest.mark.parametrize(
    "given",
    [
        "torch.randn(2, 3, 2), 1, 4",  # a mask of another size raises
        "torch.randn(2, 3, 2), 1, -1",
        "torch.randn(2, 3, 2), torch.tensor(1)",
        "torch.randn(2, 3, 2), torch.tensor([0, 1, 2])",
        "torch.randn(2, 3, 2), 0.5",
        "torch.randn(2, 3, 2), 1, 3.0",
        "torch.randn(4), 1, 4",
        "torch.randn(2, 1025), 1",
    ],
)
def test_what_is_no_integer_or_of_another_size_goes_the_way_of_eager_mode(given: str) -> None:
    before = model("x[:, torch.arange(n) != k]")
    after, _ = fixed(before)
    assert _KNOWN in after
    compiles(after, [given], scenarios=(Scenario(False, "off"),), strict=False)


@pytest.mark.parametrize(
    "body",
    [
        "x[:, torch.arange(n, dtype=torch.float32) != k]",
        "x[:, torch.arange(0, n, 2) != k]",
        "x[:, torch.arange(-1, n - 1) < -k]",  # its first element is at no place of this number
        "x[:, torch.arange(n) != self.next_position]",
        "x[:, torch.arange(n) != x.sum()]",
        "x[:, torch.arange(n) != int(x.sum())]",
        "x[..., torch.arange(n) != k]",
        "x[None, torch.arange(n) != k]",
        "x[torch.arange(2) != 0, torch.arange(n) != k]",
        "x.exp()[:, torch.arange(n) != k]",
        "x[:, torch.arange(n, device=x.cpu().device) != k]",
        "x[:, 0 < torch.arange(n)]",
        "x[:, (torch.arange(n) != k) & (torch.arange(n) != 0)]",
    ],
)
def test_other_comparisons_are_no_ranges_of_integers(body: str) -> None:
    assert "in range(" not in fixed(model(body))[0]


def test_a_name_of_pythons_own_has_to_mean_that() -> None:
    source = model("x[:, torch.arange(n) != k]")
    assert _KNOWN in fixed(source)[0]
    assert _KNOWN not in fixed(source.replace("import torch\n", "import torch\nrange = list\n", 1))[0]
