"""Geometry, features and losses for images."""

import torch

SOURCE = "pip:kornia==0.9.0"
IMPORTS = "kornia"


def loftr():
    from kornia.feature import LoFTR

    return (
        LoFTR(pretrained=None),
        ({"image0": torch.rand(1, 1, 64, 64), "image1": torch.rand(1, 1, 64, 64)},),
        {"train": False},
    )


def disk():
    from kornia.feature import DISK

    return DISK(), (torch.rand(1, 3, 64, 64),), {"train": False}


def focal_loss():
    from kornia.losses import FocalLoss

    return FocalLoss(0.5, reduction="mean", ignore_index=-100), (
        torch.randn(2, 4, 8, 8, requires_grad=True),
        torch.randint(0, 4, (2, 8, 8)),
    )


def lovasz_softmax():
    from kornia.losses import LovaszSoftmaxLoss

    return LovaszSoftmaxLoss(), (torch.randn(2, 4, 8, 8, requires_grad=True), torch.randint(0, 4, (2, 8, 8)))


def lovasz_hinge():
    from kornia.losses import LovaszHingeLoss

    return LovaszHingeLoss(), (torch.randn(2, 1, 8, 8, requires_grad=True), torch.randint(0, 2, (2, 8, 8)))


def hausdorff():
    from kornia.losses import HausdorffERLoss

    return HausdorffERLoss(k=2), (torch.randn(2, 3, 8, 8, requires_grad=True), torch.randint(0, 3, (2, 1, 8, 8)))


def canny():
    from kornia.filters import Canny

    return Canny(), (torch.rand(1, 1, 16, 16),), {"train": False}


def random_affine():
    from kornia.augmentation import RandomAffine

    return RandomAffine(20.0, p=0.5), (torch.rand(2, 3, 16, 16),)


def color_jiggle():
    from kornia.augmentation import ColorJiggle

    return ColorJiggle(0.1, 0.1, 0.1, 0.1), (torch.rand(2, 3, 16, 16),)


def augmentation_sequence():
    from kornia.augmentation import AugmentationSequential, RandomGaussianBlur, RandomHorizontalFlip

    return AugmentationSequential(
        RandomHorizontalFlip(), RandomGaussianBlur((3, 3), (0.1, 2.0)), data_keys=["input"]
    ), (torch.rand(2, 3, 16, 16),)
