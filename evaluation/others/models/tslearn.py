"""Soft dynamic time warping."""

import torch

SOURCE = "pip:tslearn==0.10.0"
IMPORTS = "tslearn"


def soft_dtw():
    from tslearn.metrics import SoftDTWLossPyTorch

    return SoftDTWLossPyTorch(), (torch.randn(2, 6, 3, requires_grad=True), torch.randn(2, 5, 3))


def normalised():
    from tslearn.metrics import SoftDTWLossPyTorch

    return SoftDTWLossPyTorch(gamma=0.1, normalize=True), (
        torch.randn(2, 6, 3, requires_grad=True),
        torch.randn(2, 6, 3),
    )
