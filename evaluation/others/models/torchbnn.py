"""Bayesian layers."""

import torch

SOURCE = "pip:torchbnn==1.2"
IMPORTS = "torchbnn"


def linear():
    from torchbnn import BayesLinear

    return BayesLinear(0, 0.1, 8, 4), (torch.randn(4, 8),)


def conv():
    from torchbnn import BayesConv2d

    return BayesConv2d(0, 0.1, 3, 4, 3), (torch.randn(2, 3, 8, 8),)


def batch_norm():
    from torchbnn import BayesBatchNorm2d

    return BayesBatchNorm2d(0, 0.1, 3), (torch.randn(2, 3, 8, 8),)


class _Divergence(torch.nn.Module):
    def __init__(self):
        super().__init__()
        import torchbnn

        self.net = torch.nn.Sequential(
            torchbnn.BayesLinear(0, 0.1, 8, 4), torch.nn.ReLU(), torchbnn.BayesLinear(0, 0.1, 4, 2)
        )
        self.loss = torchbnn.BKLLoss()

    def forward(self, x):
        return self.net(x).sum() + self.loss(self.net)


def divergence():
    return _Divergence(), (torch.randn(4, 8),)
