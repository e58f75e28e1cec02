"""Flows for nested sampling."""

import torch

SOURCE = "pip:nessai==0.15.2"
IMPORTS = "nessai.flows"


def volume_preserving():
    from nessai.flows.realnvp import RealNVP

    return RealNVP(4, 8, 2, 1), (torch.randn(5, 4),)


def multilayer():
    from nessai.flows.realnvp import RealNVP

    return RealNVP(4, 8, 2, 1, net="mlp", batch_norm_between_layers=True), (torch.randn(5, 4),)


def splines():
    from nessai.flows.nsf import NeuralSplineFlow

    return NeuralSplineFlow(4, 8, 2, 1), (torch.randn(5, 4),)


def autoregressive():
    from nessai.flows.maf import MaskedAutoregressiveFlow

    return MaskedAutoregressiveFlow(4, 8, 2, 1), (torch.randn(5, 4),)


def base():
    from nessai.flows.distributions import MultivariateNormal

    class Density(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.distribution = MultivariateNormal([4], var=2.0)

        def forward(self, x):
            return self.distribution.log_prob(x)

    return Density(), (torch.randn(5, 4),)
