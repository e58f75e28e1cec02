"""Similarity of images."""

import torch

SOURCE = "pip:pytorch-msssim==1.0.0"
IMPORTS = "pytorch_msssim"


def ms_ssim():
    from pytorch_msssim import MS_SSIM

    return MS_SSIM(data_range=1.0, win_size=3, channel=1), (
        torch.rand(1, 1, 48, 48, requires_grad=True),
        torch.rand(1, 1, 48, 48),
    )


def ssim():
    from pytorch_msssim import SSIM

    return SSIM(data_range=1.0, win_size=3, channel=1, nonnegative_ssim=True), (
        torch.rand(1, 1, 48, 48, requires_grad=True),
        torch.rand(1, 1, 48, 48),
    )
