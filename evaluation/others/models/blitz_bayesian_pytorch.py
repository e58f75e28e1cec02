"""Bayesian layers."""

import torch

SOURCE = "pip:blitz-bayesian-pytorch==0.2.8"
IMPORTS = "blitz"


def linear():
    from blitz.modules import BayesianLinear

    return BayesianLinear(4, 5), (torch.randn(3, 4),)


def convolution():
    from blitz.modules import BayesianConv2d

    return BayesianConv2d(3, 4, (3, 3)), (torch.randn(2, 3, 8, 8),)


def lstm():
    from blitz.modules import BayesianLSTM

    return BayesianLSTM(4, 5), (torch.randn(2, 6, 4),)


def peephole():
    from blitz.modules import BayesianLSTM

    return BayesianLSTM(4, 5, peephole=True), (torch.randn(2, 6, 4),)


def gru():
    from blitz.modules import BayesianGRU

    return BayesianGRU(4, 5), (torch.randn(2, 6, 4),)


def embedding():
    from blitz.modules import BayesianEmbedding

    return BayesianEmbedding(7, 4), (torch.randint(0, 7, (2, 5)),)


def frozen():
    from blitz.modules import BayesianLinear

    return BayesianLinear(4, 5, freeze=True), (torch.randn(3, 4),)
