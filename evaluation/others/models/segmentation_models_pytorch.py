"""Segmentation models and losses."""

import torch

SOURCE = "pip:segmentation-models-pytorch==0.6.0"
IMPORTS = "segmentation_models_pytorch"


def unet():
    from segmentation_models_pytorch import Unet

    return Unet("resnet18", encoder_weights=None, classes=2, decoder_channels=(16, 16, 8, 8, 4)), (
        torch.rand(2, 3, 32, 32),
    )


def dice_loss():
    from segmentation_models_pytorch.losses import DiceLoss

    return DiceLoss("multiclass", ignore_index=255), (
        torch.randn(2, 3, 8, 8, requires_grad=True),
        torch.randint(0, 3, (2, 8, 8)),
    )


def lovasz_loss():
    from segmentation_models_pytorch.losses import LovaszLoss

    return LovaszLoss("multiclass", ignore_index=255), (
        torch.randn(2, 3, 8, 8, requires_grad=True),
        torch.randint(0, 3, (2, 8, 8)),
    )


def focal_loss():
    from segmentation_models_pytorch.losses import FocalLoss

    return FocalLoss("multiclass", ignore_index=255), (
        torch.randn(2, 3, 8, 8, requires_grad=True),
        torch.randint(0, 3, (2, 8, 8)),
    )


def soft_ce():
    from segmentation_models_pytorch.losses import SoftCrossEntropyLoss

    return SoftCrossEntropyLoss(smooth_factor=0.1), (
        torch.randn(2, 3, 8, 8, requires_grad=True),
        torch.randint(0, 3, (2, 8, 8)),
    )


def mcc_loss():
    from segmentation_models_pytorch.losses import MCCLoss

    return MCCLoss(), (torch.rand(2, 1, 8, 8, requires_grad=True), torch.randint(0, 2, (2, 1, 8, 8)))


def upernet():
    from segmentation_models_pytorch import UPerNet

    return UPerNet("mit_b0", encoder_weights=None, classes=2), (torch.rand(2, 3, 64, 64),)
