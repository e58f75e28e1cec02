"""GM603: `mask.byte()` is bool where it is a mask alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.tools.compiled import compiles
from tests.tools.fixes import fixed
from tests.tools.observe import Scenario

_MODES = (Scenario(True, "leaves"), Scenario(True, "inner"), Scenario(False, "off"))
_BYTES = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor):
        {body}
"""
_MASKS = ["(torch.linspace(-1, 1, 6).reshape(2, 3), torch.tensor([[0.5, 1, 0], [256, 2, -1]]))"]
_MASKS += ["(torch.ones(0, 3), torch.ones(0, 3))", "(torch.ones(2, 3).half(), torch.zeros(2, 3))"]


def in_eager_mode(source: str) -> list[Any]:
    """What the model of a module gives for all inputs; `behaves` looks for warnings at calls, not at subscripts."""
    names: dict[str, Any] = {}
    exec(source, names)
    return [names["Model"]()(*eval(each, {"torch": torch})) for each in _MASKS]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "body",
    [
        "return torch.where(mask.byte(), x * 2, x)",
        "m = mask.byte()\n        return torch.where(m, x * 2, x), m.shape",
        "m = mask.byte().detach()\n        y = x * 2\n        y[m] = x[m]\n        return y",
        "mask = mask.byte()\n        if mask.numel() > 0:\n            return x[mask].sum()\n        return x.sum()",
        "with torch.no_grad():\n            m = (mask > 0).byte()\n        return x[m].sum()",
    ],
)
def test_masks_of_bytes_are_bool_where_they_are_masks_alone(body: str) -> None:
    source = _BYTES.format(body=body)
    after, _ = fixed(source)
    assert ".byte().bool()" in after
    torch.testing.assert_close(in_eager_mode(after), in_eager_mode(source), rtol=0, atol=0)
    compiles(after, _MASKS[:1], scenarios=_MODES)
    compiles(after, _MASKS[1:], strict=False, scenarios=_MODES)


@pytest.mark.parametrize(
    "body",
    [
        "return mask.byte()",
        "return x * mask.byte()",
        "m = mask.byte()\n        return x[m].sum() + m.sum()",
        "m = mask.byte()\n        return x[~m].sum()",
        "m = mask.byte()\n        y = x[m].sum()\n        m = m * 3\n        return y + m",
        "m = mask.byte()\n        return x[m].sum(), lambda: m",
        "y = x * 1\n        m = mask.byte()\n        y[m] = 2.0\n        return y",
        "m = x > 0\n        for _ in [1, 2]:\n            x = x[m] * 1\n            m = mask.byte()\n        return x",
        "m = mask.byte()\n        m[0] = 2\n        return x[m].sum()",
        "m = mask.byte()\n        m += 1\n        return x[m].sum()",
        "m = mask.byte()\n        return torch.where(x > 0, m, 1 - m)",
        "return self.kept(mask.byte())",
    ],
)
def test_bytes_that_may_be_numbers_stay(body: str) -> None:
    assert ".byte().bool()" not in fixed(_BYTES.format(body=body))[0]


def test_an_object_with_a_method_of_that_name_keeps_its_own_result() -> None:
    source = _BYTES.format(body="m = self.maker.byte()\n        return x[m].sum() + mask.sum()")
    after, _ = fixed(source)
    assert ".byte().bool()" not in after or "isinstance(self.maker, torch.Tensor)" in after
