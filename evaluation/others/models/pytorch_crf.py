"""Conditional random field."""

import torch

SOURCE = "pip:pytorch-crf==0.7.2"
IMPORTS = "torchcrf"


class _Decode(torch.nn.Module):
    def __init__(self, crf):
        super().__init__()
        self.crf = crf

    def forward(self, emissions, mask):
        return self.crf.decode(emissions, mask)


def likelihood():
    from torchcrf import CRF

    return CRF(4, batch_first=True), (
        torch.randn(2, 5, 4),
        torch.randint(0, 4, (2, 5)),
        torch.tensor([[True] * 5, [True, True, True, False, False]]),
    )


def decode():
    from torchcrf import CRF

    return (
        _Decode(CRF(4, batch_first=True)),
        (torch.randn(2, 5, 4), torch.tensor([[True] * 5, [True, True, True, False, False]])),
        {"train": False},
    )
