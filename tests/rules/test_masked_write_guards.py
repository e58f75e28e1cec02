"""GM104: what changes nothing under an empty mask runs without asking for one when compiled."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.tools.behaviour import behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import declined, fixed
from tests.tools.observe import Scenario

_MODEL = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        out, y = x * 1.0, x - 1.0
        done = x.isnan()
        m = x > 2.0
        {body}
        return out, y, done
"""


def model(body: str) -> str:
    return _MODEL.format(body=body.strip().replace("\n", "\n        "))


def test_rows_numbers_and_flags_under_one_mask_are_one_graph() -> None:
    source = model("if m.any():\n    out[m] = y[m]\n    y[m] = 0.0\n    done |= m\nif not m.all():\n    y[~m] = 5.0")
    after, result = fixed(source)
    assert not result.remaining
    inputs = ["torch.ones(2, 4)", "torch.arange(8.0).view(2, 4)"]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=(Scenario(gradients="off"),))


def test_masks_with_more_dimensions_are_the_mask() -> None:
    source = model(
        """
if m.any():
    out = out.masked_fill(m[:, :], 2.0)
    y[None].masked_fill_(m.unsqueeze(0).to(torch.bool), 1.0)
"""
    )
    after, result = fixed(source)
    assert not result.remaining
    inputs = ["torch.ones(2, 4)", "torch.arange(8.0).view(2, 4)"]
    behaves(source, after, inputs)
    compiles(after, inputs, scenarios=(Scenario(gradients="off"),))


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("t = x[7]\n    out[m] = 0.0", "may raise for some shapes"),
        ("t = x * 2.0\n    out[m] = t[m]", "`t` is computed in the branch"),
        ("out[m] = 1.0\n    y = y + 1.0", "`y` is assigned beside elements"),
        ("out[m] = y[m].max()", "`out[m]` gets something other than rows"),
    ],
)
def test_what_may_change_something_under_an_empty_mask_is_declined(body: str, because: str) -> None:
    declined(model(f"if m.any():\n    {body}"), because=because)


def test_flags_that_are_no_bools_are_left_alone() -> None:
    declined(
        model("out = torch.ones(2, 4, dtype=torch.int64)\nif m.any():\n    out |= m\n    y[m] = 0.0"),
        because="is not a mask of bools",
    )


def test_what_is_compared_needs_no_question_for_its_dtype() -> None:
    source = """
        import torch
        from torch import nn


        class Model(nn.Module):
            def forward(self, x: torch.Tensor):
                y = x * 1
                if (y < 0).any():
                    y[y < 0] = 0
                return y
        """
    after, _ = fixed(dedent(source))
    assert "is_compiling()" in after
    assert "dtype == torch.bool" not in after
