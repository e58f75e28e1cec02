"""One row for all that a mask chooses, `x[mask] = row.expand_as(x[mask])` (GM510)."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, ids: torch.Tensor, x, features):
        x = x * self.scale
        for i, each in enumerate((5, 6)):
            mask = ids == each
            if mask.any():
                x[mask] = {value}
        return x
"""
_TABLE = _MODEL.format(value="features[i].expand_as(x[mask]).to(x.device, x.dtype)")
_ROW = _MODEL.format(value="features.expand_as(x[mask])")
_IDS, _X = "torch.tensor([[5, 6, 5], [1, 5, 2]])", "torch.ones(2, 3, 2)"
_TWO = "torch.tensor([[5, 6, 7], [1, 5, 2]])"
_NONE = "torch.tensor([[1, 2, 3], [4, 1, 2]])"
_WIDE = "torch.tensor([[0.5, 1.5], [2.5, 3.5]], dtype=torch.float64)"
_TRAINED = [Scenario(), Scenario(gradients="leaves")]


def _fixed(source: str) -> str:
    after, _ = fixed(source, select=("GM510",))
    assert "elif mask.any():" in after
    return after


@pytest.mark.parametrize(
    ("source", "given"),
    [(_TABLE, "torch.tensor([[7.0, 8.0], [9.0, 1.0]])"), (_TABLE, _WIDE), (_ROW, "torch.tensor([7.0, 8.0])")],
)
def test_the_row_is_written_where_the_mask_holds(source: str, given: str) -> None:
    after = _fixed(source)
    behaves(source, after, [f"{ids}, {_X}, {given}" for ids in (_IDS, _NONE)])
    compiles(after, [f"{ids}, {_X}, {given}" for ids in (_IDS, _NONE)], scenarios=_TRAINED)


@pytest.mark.parametrize(
    ("source", "ids", "given"),
    [
        (_ROW, _IDS, "torch.ones(1, 2)"),
        (_ROW.replace("(5, 6)", "(5,)"), _TWO, "torch.tensor([[1.0, 2.0], [3.0, 4.0]])"),  # a row for each chosen one
        (_ROW, _NONE, "torch.ones(7)"),
        (_ROW, _IDS, "torch.tensor(3.0)"),
        (_TABLE, _IDS, "[torch.ones(2), torch.zeros(2)]"),
        (_TABLE, _NONE, "torch.ones(1, 2)"),
        (_TABLE, _NONE, "torch.tensor(1.0)"),
        (_TABLE, _NONE, "None"),
        (_TABLE.replace("(5, 6)", "(5,)"), _TWO, "torch.arange(4.0).reshape(1, 2, 2)"),
        (_TABLE.replace("features[i]", "features[each == 5]"), _TWO, "torch.tensor([7.0, 8.0])"),
        (_TABLE.replace("i, each in enumerate((5, 6))", "i, each in ((True, 5),)"), _NONE, "torch.ones(2, 2)"),
    ],
)
def test_what_is_no_single_row_runs_as_the_author_wrote_it(source: str, ids: str, given: str) -> None:
    after, _ = fixed(source, select=("GM510",))
    behaves(source, after, [f"{ids}, {_X}, {given}"])
    compiles(after, [f"{ids}, {_X}, {given}"], scenarios=[Scenario()], strict=False)


@pytest.mark.parametrize(
    ("branch", "because"),
    [
        ("row = features\n                x[mask] = row.expand_as(x[mask])", "has no name before the statement"),
        ("x[mask] = features.exp().expand_as(x[mask])", "has no name before the statement"),
        ("x[mask] = features[self.pick()].expand_as(x[mask])", "has no name before the statement"),
    ],
)
def test_what_has_no_name_above_is_left_alone(branch: str, because: str) -> None:
    source = _MODEL.replace("x[mask] = {value}", branch)
    assert any(because in (each.declined or "") for each in checked(source, select=("GM510",)).findings)
    assert fixed(source, select=("GM510",))[0] == source
