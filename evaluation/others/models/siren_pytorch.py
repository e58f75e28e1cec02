"""Sinusoidal networks."""

import torch

SOURCE = "pip:siren-pytorch==0.1.7"
IMPORTS = "siren_pytorch"


def _net():
    from siren_pytorch import SirenNet

    return SirenNet(dim_in=2, dim_hidden=8, dim_out=3, num_layers=2)


def network():
    return _net(), (torch.randn(5, 2),)


def image():
    from siren_pytorch import SirenWrapper

    return SirenWrapper(_net(), 6, 6), (torch.rand(1, 3, 6, 6),)


def latent():
    from siren_pytorch import SirenWrapper

    return SirenWrapper(_net(), 6, 6, latent_dim=4), {"img": torch.rand(1, 3, 6, 6), "latent": torch.randn(4)}
