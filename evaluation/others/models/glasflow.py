"""Normalizing flows."""

import torch

SOURCE = "pip:glasflow==0.4.1"
IMPORTS = "glasflow"


class _Density(torch.nn.Module):
    def __init__(self, flow):
        super().__init__()
        self.flow = flow

    def forward(self, *inputs):
        return self.flow.log_prob(*inputs)


def affine():
    from glasflow import RealNVP

    return _Density(RealNVP(4, 2, n_neurons=8)), (torch.randn(5, 4),)


def splines():
    from glasflow import CouplingNSF

    return _Density(CouplingNSF(4, 2, n_neurons=8)), (torch.randn(5, 4),)


def autoregressive():
    from glasflow.flows.autoregressive import MaskedAffineAutoregressiveFlow

    return _Density(MaskedAffineAutoregressiveFlow(4, 2, n_neurons=8)), (torch.randn(5, 4),)


def conditional():
    from glasflow import CouplingNSF

    return _Density(CouplingNSF(4, 2, n_neurons=8, n_conditional_inputs=3)), (torch.randn(5, 4), torch.randn(5, 3))
