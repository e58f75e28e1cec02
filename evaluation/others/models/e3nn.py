"""Equivariant networks."""

import torch

SOURCE = "pip:e3nn==0.6.0"
IMPORTS = "e3nn"


def tensor_product():
    from e3nn.o3 import FullyConnectedTensorProduct

    return FullyConnectedTensorProduct("2x0e + 1x1o", "1x0e + 1x1o", "2x0e + 1x1o"), (
        torch.randn(3, 5),
        torch.randn(3, 4),
    )


def gate():
    from e3nn.nn import Gate

    return Gate("2x0e", [torch.relu], "1x0e", [torch.sigmoid], "1x1o"), (torch.randn(3, 6),)


def spherical_harmonics():
    from e3nn.o3 import SphericalHarmonics

    return SphericalHarmonics([0, 1, 2], normalize=True), (torch.randn(3, 3),)


def batch_norm():
    from e3nn.nn import BatchNorm

    return BatchNorm("2x0e + 1x1o"), (torch.randn(3, 5),)
