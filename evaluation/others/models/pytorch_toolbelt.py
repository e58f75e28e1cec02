"""Losses and modules for image segmentation."""

import torch

SOURCE = "pip:pytorch_toolbelt==0.8.0"
IMPORTS = "pytorch_toolbelt"


def _binary():
    return torch.randn(2, 1, 8, 8, requires_grad=True), torch.randint(0, 2, (2, 1, 8, 8)).float()


def _classes():
    return torch.randn(2, 4, 8, 8, requires_grad=True), torch.randint(0, 4, (2, 8, 8))


def balanced_bce():
    from pytorch_toolbelt.losses import BalancedBCEWithLogitsLoss

    return BalancedBCEWithLogitsLoss(ignore_index=-100), _binary()


def bi_tempered():
    from pytorch_toolbelt.losses import BiTemperedLogisticLoss

    return BiTemperedLogisticLoss(0.8, 1.4, smoothing=0.06), (
        torch.randn(6, 4, requires_grad=True),
        torch.randint(0, 4, (6,)),
    )


def dice():
    from pytorch_toolbelt.losses import DiceLoss

    return DiceLoss("multiclass", ignore_index=3), _classes()


def jaccard():
    from pytorch_toolbelt.losses import JaccardLoss

    return JaccardLoss("multiclass"), _classes()


def binary_focal():
    from pytorch_toolbelt.losses import BinaryFocalLoss

    return BinaryFocalLoss(alpha=0.25, ignore_index=-1, normalized=True), _binary()


def cross_entropy_focal():
    from pytorch_toolbelt.losses import CrossEntropyFocalLoss

    return CrossEntropyFocalLoss(ignore_index=3), _classes()


def lovasz():
    from pytorch_toolbelt.losses import LovaszLoss

    return LovaszLoss(ignore=3), (torch.rand(2, 4, 8, 8, requires_grad=True), torch.randint(0, 4, (2, 8, 8)))


def binary_lovasz():
    from pytorch_toolbelt.losses import BinaryLovaszLoss

    logits, target = _binary()
    return BinaryLovaszLoss(per_image=True, ignore_index=255), (logits, target)


def soft_f1():
    from pytorch_toolbelt.losses import SoftF1Loss

    return SoftF1Loss(ignore_index=3), (torch.randn(8, 4, requires_grad=True), torch.randint(0, 4, (8,)))


def binary_soft_f1():
    from pytorch_toolbelt.losses import BinarySoftF1Loss

    return BinarySoftF1Loss(ignore_index=-1), (torch.rand(8, requires_grad=True), torch.randint(0, 2, (8,)).float())


def soft_cross_entropy():
    from pytorch_toolbelt.losses import SoftCrossEntropyLoss

    return SoftCrossEntropyLoss(smooth_factor=0.1), _classes()


def wing():
    from pytorch_toolbelt.losses import WingLoss

    return WingLoss(), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8))


def drop_block():
    from pytorch_toolbelt.modules.dropblock import DropBlock2D

    return DropBlock2D(0.3, 3), (torch.randn(2, 4, 8, 8, requires_grad=True),)
