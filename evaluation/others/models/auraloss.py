"""Losses of audio."""

import torch

SOURCE = "pip:auraloss==0.4.0"
IMPORTS = "auraloss"


def multi_resolution():
    from auraloss.freq import MultiResolutionSTFTLoss

    return MultiResolutionSTFTLoss([64, 32], [16, 8], [64, 32]), (
        torch.randn(2, 1, 400, requires_grad=True),
        torch.randn(2, 1, 400),
    )


def random_resolution():
    from auraloss.freq import RandomResolutionSTFTLoss

    return RandomResolutionSTFTLoss(resolutions=2, min_fft_size=16, max_fft_size=64), (
        torch.randn(2, 1, 400, requires_grad=True),
        torch.randn(2, 1, 400),
    )


def perceptual():
    from auraloss.perceptual import FIRFilter

    return FIRFilter("hp"), (torch.randn(2, 1, 400, requires_grad=True), torch.randn(2, 1, 400))
