"""What breaks the graph is found where nothing else in the file hints at it: what a file notes of it is enough."""

from __future__ import annotations

import pytest

from tests.tools.fixes import checked

_MODEL = """
import torch
from torch import nn


def total(x):
    return x.sum()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, y: torch.Tensor, n: int, batch):
        {body}
        return x
"""


@pytest.mark.parametrize(
    "body",
    [
        "x = x * float(torch.dot(x, x))",
        "x = x * float(torch.clamp(x.sum(), 1))",
        "x = x * int(torch.sqrt(x.sum()))",
        "x = x * float(x[0].detach())",
        "x = x * float(x[0].cpu())",
        "x = x * float(self.lin(x)[0])",
        "x = x * float(total(x))",
        "x = x[: torch.argmax(x)]",
        "x = x[: x.square()[0].long()]",
        "x = torch.zeros(y[0].long())",
        "x = x.repeat(torch.dot(x, x).long())",
        "x = x.requires_grad_()",
        "x = (x * 2).requires_grad_()",
        "z = x.clone()\n        z.requires_grad_()",
        "x.requires_grad_()",
        'batch["pos"].requires_grad_(True)',
        "kept = torch.squeeze(y > 0)\n        x = x[:, kept]",
        "kept = torch.flatten(y.ne(0))\n        x = x[kept]",
        "x = torch.stack(sorted(x))",
        "x = x * len(str(x))",
        "batch['text'] = repr(x)",
    ],
)
def test_it_is_found_alone(body: str) -> None:
    assert checked(_MODEL.format(body=body), opaque=True).findings


@pytest.mark.parametrize(
    "body",
    [
        "x = x * int(n.bit_length())",
        "x = x[: int(len(x) / 2)]",
        "x = x.view(int(x.shape[0]), x.numel() // x.size(0))",
        'x = x * int("12".strip())',
        "z = x.clone()\n        z = z.requires_grad_(False)",
        'self.parts["a"].requires_grad_(True)',
    ],
)
def test_numbers_of_python_are_no_findings(body: str) -> None:
    assert not checked(_MODEL.format(body=body), opaque=True).findings
