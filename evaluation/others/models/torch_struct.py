"""Structured distributions."""

import torch

SOURCE = "pip:torch-struct==0.5"
IMPORTS = "torch_struct"


class _Likelihood(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, scores):
        return self.make(scores)


def linear_chain():
    import torch_struct

    return _Likelihood(lambda s: torch_struct.LinearChainCRF(s, lengths=torch.tensor([5, 4])).partition), (
        torch.randn(2, 4, 3, 3, requires_grad=True),
    )


def marginals():
    import torch_struct

    return _Likelihood(lambda s: torch_struct.LinearChainCRF(s).argmax), (torch.randn(2, 4, 3, 3, requires_grad=True),)
