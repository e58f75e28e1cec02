"""Optical character recognition."""

import torch

SOURCE = "pip:easyocr==1.7.2"
IMPORTS = "easyocr.model.vgg_model"


def recognizer():
    from easyocr.model.vgg_model import Model

    return Model(1, 16, 16, 10), (torch.randn(1, 1, 32, 64), torch.zeros(1, 4, dtype=torch.int64))


def craft():
    from easyocr.craft import CRAFT

    return CRAFT(), (torch.randn(1, 3, 64, 64),), {"train": False}


def _maps():
    return torch.rand(2, 1, 8, 8), (torch.rand(2, 1, 8, 8) > 0.5).float(), torch.ones(2, 8, 8)


def balanced():
    from easyocr.DBNet.decoders.balance_cross_entropy_loss import BalanceCrossEntropyLoss

    return BalanceCrossEntropyLoss(), _maps()


def balanced_l1():
    from easyocr.DBNet.decoders.l1_loss import BalanceL1Loss

    pred, gt, mask = _maps()
    return BalanceL1Loss(), (pred, gt[:, 0], mask)


def masked_l1():
    from easyocr.DBNet.decoders.l1_loss import MaskL1Loss

    pred, gt, mask = _maps()
    return MaskL1Loss(), (pred, gt[:, 0], mask)


def selection():
    from easyocr.DBNet.decoders.feature_attention import ScaleFeatureSelection

    features = [torch.randn(1, 4, 8, 8) for _ in range(4)]
    return ScaleFeatureSelection(16, 4), (torch.cat(features, 1), features)
