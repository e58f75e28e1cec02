"""Elements that a mask chooses, copied to where it holds."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.arange(12.0).reshape(2, 3, 2))

    def forward(self, x: torch.Tensor, ids):
        table = self.table * 2
        mask = ids > 0
        block, place = ids // 3, ids % 3
        y = torch.ones(x.shape, dtype=x.dtype)
        y[mask] = x[mask]
        z = torch.zeros_like(x)
        z[mask] = table[block[mask], place[mask], :]
        return y - z
"""
_GOOD = "torch.rand(2, 2, 2), torch.tensor([[1, 5], [0, 3]])"
_ROW = "torch.rand(3, 2), torch.tensor([-8, 2, 4])"


def test_rows_that_a_mask_chooses_are_copied_and_looked_up() -> None:
    after, result = fixed(_MODEL, select=("GM509",))
    assert "z.copy_(torch.where(rows, found, z))" in after
    behaves(_MODEL, after, [_GOOD, _ROW])
    assert fixed(after, select=("GM509",))[0] == after
    assert result.fixes


def test_rows_are_copied_and_looked_up_in_one_graph_whatever_is_left_out() -> None:
    after, _ = fixed(_MODEL, select=("GM509",))
    compiles(after, [_GOOD, _ROW, "torch.rand(5, 2), torch.tensor([-8, 2, 4, 1, 0])"])


@pytest.mark.parametrize("value", ["x[mask] * 2", "self.table(x[mask])", "[x[mask]]"])
def test_what_is_computed_with_the_elements_is_no_business_of_the_rule(value: str) -> None:
    found = checked(_MODEL.replace("x[mask]\n", f"{value}\n")).findings
    assert [each.span.start_line for each in found if each.code == "GM509"] == [18]


def test_an_array_of_numpy_is_left_alone() -> None:
    source = _MODEL.replace("import torch\n", "import numpy as np\nimport torch\n", 1)
    source = source.replace("y = torch.ones(x.shape, dtype=x.dtype)", "y = np.ones((2, 2, 2))").replace(
        "return y - z", "return z, y"
    )
    (finding,) = [each for each in checked(source, select=("GM509",)).findings if each.span.start_line == 17]
    assert finding.declined == "`y` is an array of NumPy, not a tensor"


def test_a_view_of_a_mask_selects_as_a_mask_does() -> None:
    model = _MODEL.replace("y[mask] = x[mask]", "y[mask.view(2, -1)] = x[mask.view(2, -1)]")
    after, result = fixed(model)
    assert "rows = mask.view(2, -1)" in after
    assert result.fixes
    behaves(model, after, [_GOOD])


def test_views_of_two_masks_are_no_copy() -> None:
    model = _MODEL.replace("y[mask] = x[mask]", "y[mask.view(2, -1)] = x[mask.view(-1, 2)]")
    assert "mask.view(2, -1).shape" not in fixed(model, select=("GM509",))[0]
