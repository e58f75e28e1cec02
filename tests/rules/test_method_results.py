"""Methods that compute results from what their instance holds, as one operator of compiled code."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from graphmend_codemod.rules.framework.reasons import NotProven
from graphmend_codemod.rules.proofs.outlining.statements import outlined_statements
from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import checked, fixed
from tests.tools.observe import Scenario

_CODE = {"select": ("GM801",), "opaque": True}
_SOURCE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("shift", torch.zeros(3))
        self.limit = 2.0

    def smooth(self, x: torch.Tensor):
        out = x * self.scale + self.shift
        for row in range(len(x)):
            if out[row].sum().item() > self.limit:
                out[row] = out[row] / out[row].abs().max()
        return out, out.argmax(-1)

    @torch.no_grad()
    def field(self, image: torch.Tensor) -> torch.Tensor:
        field = torch.zeros_like(image)
        for i in range(len(image)):
            mask = image[i] > 0.5
            if mask.any() and not mask.all():
                field[i] = torch.from_numpy(mask.cpu().numpy()).float()
        return field

    def forward(self, x: torch.Tensor):
        rows, best = self.smooth(x)
        return rows + self.field(x) + best[:, None]
"""
_INPUTS = ("torch.randn(4, 3)", "torch.randn(2, 3, requires_grad=True)")


def test_they_are_one_operator_with_gradients_for_what_the_instance_holds() -> None:
    after, _ = fixed(_SOURCE, **_CODE)
    assert "return _smooth_operator(self, x)" in after
    assert "return _field_operator(self, image)" in after
    behaves(_SOURCE, after, _INPUTS, scenarios=FEW_SCENARIOS)
    compiles(after, _INPUTS, scenarios=(Scenario(False, "off"), Scenario(True, "leaves")), state=False)


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("return out, out.argmax(-1)", "self.last = 1\n        return out, out.argmax(-1)", "changes something, too"),
        ("return out, out.argmax(-1)", "return self.shift, out.argmax(-1)", "is handed out"),
        ("out = x * self.scale", "x += 1\n        out = x * self.scale", "changes something, too"),
        ("return out, out.argmax(-1)", "return out[out > 0], out.argmax(-1)", "the shape of a result may depend on"),
    ],
)
def test_what_else_they_do_is_the_reason_not_to(
    old: str, new: str, because: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlined_statements, "edit", Mock(side_effect=NotProven))  # which takes some of the statements
    found = checked(_SOURCE.replace(old, new), **_CODE).findings
    assert any(because in (each.declined or "") for each in found), [each.declined for each in found]
