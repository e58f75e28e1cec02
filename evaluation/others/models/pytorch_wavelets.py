"""Wavelet transforms of images, and scattering."""

import torch

SOURCE = "pip:pytorch-wavelets==1.3.0"
IMPORTS = "pytorch_wavelets"


def decomposition():
    from pytorch_wavelets import DWTForward

    return DWTForward(J=2, wave="db2", mode="symmetric"), (torch.randn(2, 3, 16, 16),)


def lines():
    from pytorch_wavelets import DWT1DForward

    return DWT1DForward(J=2, wave="db2", mode="periodization"), (torch.randn(2, 3, 32),)


def reconstruction():
    from pytorch_wavelets import DWTInverse

    return DWTInverse(wave="db1"), (
        (torch.randn(2, 3, 4, 4), [torch.randn(2, 3, 3, 8, 8), torch.randn(2, 3, 3, 4, 4)]),
    )


def dual_tree():
    from pytorch_wavelets import DTCWTForward

    return DTCWTForward(J=2), (torch.randn(2, 3, 18, 18),)


def dual_tree_inverse():
    from pytorch_wavelets import DTCWTInverse

    return DTCWTInverse(), ((torch.randn(2, 3, 8, 8), [torch.randn(2, 3, 6, 8, 8, 2), torch.randn(2, 3, 6, 4, 4, 2)]),)


def scattering():
    from pytorch_wavelets.scatternet import ScatLayer

    return ScatLayer(), (torch.randn(2, 3, 16, 16),)


def scattering_twice():
    from pytorch_wavelets.scatternet import ScatLayerj2

    return ScatLayerj2(), (torch.randn(2, 3, 16, 16),)
