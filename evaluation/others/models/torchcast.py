"""Forecasting of time series."""

import torch

SOURCE = "pip:torchcast==0.2"
IMPORTS = "torchcast"


def encoder():
    from torchcast.nn.transformers import Encoder

    return Encoder(16, 2, num_heads=2), (torch.randn(2, 16, 12),)


def decoder():
    from torchcast.nn.transformers import Decoder

    return Decoder(16, 2, num_heads=2), (torch.randn(2, 16, 12), torch.randn(2, 16, 9))


def nan_encoder():
    from torchcast.nn.layers import NaNEncoder

    x = torch.randn(2, 3, 12)
    x[0, 1, 3] = float("nan")
    return NaNEncoder(), (x,)


def position_embedding():
    from torchcast.nn.layers import PositionEmbedding

    return PositionEmbedding(8), (torch.randn(2, 8, 12), torch.arange(12).expand(2, 1, 12))


def mean_absolute():
    from torchcast.nn.criteria import L1Loss

    y = torch.randn(2, 3, 12)
    y[0, 1, 3] = float("nan")
    return L1Loss(), (torch.randn(2, 3, 12, requires_grad=True), y)


def smooth():
    from torchcast.nn.criteria import SmoothL1Loss

    y = torch.randn(2, 3, 12)
    y[0, 1, 3] = float("nan")
    return SmoothL1Loss(), (torch.randn(2, 3, 12, requires_grad=True), y)
