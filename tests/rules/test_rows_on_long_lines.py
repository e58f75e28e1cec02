"""Rows under a mask whose compile path is too long for one line (GM510)."""

from __future__ import annotations

import pytest

from tests.tools.fixes import fixed


@pytest.mark.parametrize("width", [112, 114, 116, 118])
def test_a_value_that_is_too_long_behind_its_name_is_broken_once(width: int) -> None:
    names = "inputs: torch.Tensor, exponent: float, mask_of_classes: torch.Tensor"
    value = "-exponent * torch.pow(1 - inputs[mask_of_classes], 2) * inputs[mask_of_classes]"
    source = (
        f"import torch\n\n# {'x' * (width - 2)}\n\n\nclass Model(torch.nn.Module):\n    def forward(self, {names}):\n"
        f"        positive = {value}\n        return positive.mean()\n"
    )
    after, _ = fixed(source, select=("GM510",))
    assert "            positive = (\n                -exponent * torch.pow(" in after
    assert "(\n                (\n" not in after
