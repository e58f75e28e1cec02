"""Losses beside optimizers."""

import torch

SOURCE = "pip:pytorch-optimizer==4.1.0"
IMPORTS = "pytorch_optimizer"

_CLASSES = torch.tensor([0, 1, 2, 3, 1, 0])


def _labels():
    return torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2, 8, 8))


def _images():
    return torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 1, 8, 8)).float()


def _binary():
    return torch.rand(6, 1), torch.tensor([[0.0], [1.0], [1.0], [0.0], [1.0], [0.0]])


def _scores():
    return torch.randn(6, 4)


def bi_tempered():
    from pytorch_optimizer.loss import BiTemperedLogisticLoss

    return BiTemperedLogisticLoss(0.8, 1.4, label_smooth=0.1), (_scores(), torch.eye(4)[_CLASSES])


def binary_bi_tempered():
    from pytorch_optimizer.loss import BinaryBiTemperedLogisticLoss

    return BinaryBiTemperedLogisticLoss(0.8, 1.4, ignore_index=255), _binary()


def binary_bi_tempered_cold():
    from pytorch_optimizer.loss import BinaryBiTemperedLogisticLoss

    return BinaryBiTemperedLogisticLoss(0.8, 0.9), _binary()


def entropy():
    from pytorch_optimizer.loss import BCELoss

    return BCELoss(0.1), _binary()


def dice():
    from pytorch_optimizer.loss import DiceLoss

    return DiceLoss("multiclass", ignore_index=2), _labels()


def dice_classes():
    from pytorch_optimizer.loss import DiceLoss

    return DiceLoss("multiclass", classes=[0, 2], log_loss=True), _labels()


def jaccard():
    from pytorch_optimizer.loss import JaccardLoss

    return JaccardLoss("binary"), _images()


def focal_cosine():
    from pytorch_optimizer.loss import FocalCosineLoss

    return FocalCosineLoss(), (_scores(), _CLASSES)


def focal_tversky():
    from pytorch_optimizer.loss import FocalTverskyLoss

    return FocalTverskyLoss(), _binary()


def margins():
    from pytorch_optimizer.loss import LDAMLoss

    return LDAMLoss([10, 5, 3, 2]), (_scores(), _CLASSES)


def lovasz():
    from pytorch_optimizer.loss import LovaszHingeLoss

    return LovaszHingeLoss(), (torch.randn(2, 8, 8), torch.randint(0, 2, (2, 8, 8)).float())


def lovasz_batch():
    from pytorch_optimizer.loss import LovaszHingeLoss

    return LovaszHingeLoss(per_image=False), (torch.randn(2, 8, 8), torch.randint(0, 2, (2, 8, 8)).float())
