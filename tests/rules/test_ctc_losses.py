"""CTC losses, whose operator of torch has no shape for torch.compile: statements around them as one operator."""

from __future__ import annotations

import pytest

from tests.tools.behaviour import FEW_SCENARIOS, behaves
from tests.tools.compiled import compiles
from tests.tools.fixes import embedded, fixed
from tests.tools.observe import Scenario

_SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 5)
        self.ctc = nn.CTCLoss(zero_infinity=True)
        self.each = nn.CTCLoss(reduction="none")

    def forward(self, x: torch.Tensor, y: torch.Tensor, lengths: torch.Tensor):
        probs = self.lin(x).log_softmax(-1).transpose(0, 1)
        steps = torch.full((x.shape[0],), x.shape[1])
        ...
"""
_INPUTS = [
    "torch.randn(2, 6, 4), torch.tensor([[1, 2, 3], [4, 1, 0]]), torch.tensor([3, 2])",
    "torch.randn(3, 7, 4), torch.tensor([[1, 2], [4, 1], [2, 2]]), torch.tensor([2, 2, 1])",
]
_BODIES = {
    "function": "loss = F.ctc_loss(probs, y, steps, lengths)\nreturn loss * 2",
    "each sequence": "loss = F.ctc_loss(probs, y, steps, lengths, reduction='none')\nreturn loss / lengths, probs",
    "layer": "loss = self.ctc(probs, y, steps, lengths)\nreturn loss * 2",
    "flags of cuDNN": """
loss = None
with torch.backends.cudnn.flags(enabled=False):
    loss = F.ctc_loss(
        probs,
        y,
        steps,
        lengths,
    )
return loss, probs
""",
}


@pytest.mark.parametrize("body", _BODIES.values(), ids=_BODIES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_loss_of_a_batch_is_one_operator(body: str) -> None:
    source = embedded(body, _SOURCE)
    text = fixed(source, opaque=True)[0]
    assert "it calls them as one operator" in text
    behaves(source, text, _INPUTS, scenarios=FEW_SCENARIOS[:2])
    compiles(text, _INPUTS, scenarios=[Scenario(), Scenario(True, "leaves")], state=False)
    assert fixed(text, opaque=True)[0] == text


@pytest.mark.parametrize(
    "body",
    [
        "loss = F.ctc_loss(probs, y, steps, lengths, reduction=self.kind)\nreturn loss * 2",
        "loss = F.ctc_loss(probs, y, steps, [3, 2])\nreturn loss * 2",  # torch has no gradient by lists in an operator
        "loss = self.lin(x)\nloss = loss.sum() + self.ctc(self.lin(probs), y, steps, lengths)\nreturn loss",
    ],
)
def test_other_losses_are_left_alone(body: str) -> None:
    source = embedded(body, _SOURCE)
    assert fixed(source, opaque=True)[0] == source


@pytest.mark.parametrize(("layer", "asked"), [("each", "=="), ("ctc", "!=")])
def test_the_reduction_of_a_layer_is_asked_for(layer: str, asked: str) -> None:
    text = fixed(embedded(_BODIES["layer"].replace("self.ctc", f"self.{layer}"), _SOURCE), opaque=True)[0]
    assert f'self.{layer}.reduction {asked} "none"' in text
    assert "type(lengths) is torch.Tensor" in text
    assert ("[..., 0]" in text) == (layer == "each")
