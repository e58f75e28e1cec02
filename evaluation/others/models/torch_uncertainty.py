"""Uncertainty."""

import torch

SOURCE = "pip:torch-uncertainty==0.13.0"
IMPORTS = "torch_uncertainty"


class _Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def ensemble():
    from torch_uncertainty.layers.batch_ensemble import BatchLinear

    return BatchLinear(6, 4, num_estimators=2), (torch.randn(4, 6),)


def bayesian():
    from torch_uncertainty.layers.bayesian import BayesConv2d

    return BayesConv2d(3, 4, 3), (torch.randn(2, 3, 8, 8),)


def bayesian_linear():
    from torch_uncertainty.layers.bayesian import BayesLinear

    return BayesLinear(6, 4), (torch.randn(2, 6),)


def latent_posterior():
    from torch_uncertainty.layers.bayesian import LPBNNLinear

    return LPBNNLinear(6, 4, num_estimators=2), (torch.randn(4, 6),)


def masks():
    from torch_uncertainty.layers.masksembles import MaskedLinear

    return MaskedLinear(12, 12, num_estimators=2, scale=2.0), (torch.randn(4, 12),)


def packed():
    from torch_uncertainty.layers.packed import PackedConv2d

    return PackedConv2d(4, 8, 3, alpha=2, num_estimators=2, gamma=1), (torch.randn(2, 8, 8, 8),)


def packed_attention():
    from torch_uncertainty.layers.packed import PackedTransformerEncoderLayer

    return PackedTransformerEncoderLayer(8, 2, alpha=1, num_estimators=2, dim_feedforward=16), (torch.randn(5, 2, 8),)


def evidence():
    from torch_uncertainty.losses import DECLoss

    return DECLoss(reg_weight=0.1), (torch.rand(4, 3), torch.tensor([0, 1, 2, 1]))


def focal():
    from torch_uncertainty.losses import FocalLoss

    return FocalLoss(2.0), (torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))


def conflict():
    from torch_uncertainty.losses import ConflictualLoss

    return ConflictualLoss(), (torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))


def calibration():
    from torch_uncertainty.metrics.classification import CalibrationError

    metric = CalibrationError(task="multiclass", num_classes=3)
    return _Calls(metric), (torch.rand(8, 3).softmax(-1), torch.randint(0, 3, (8,))), {"train": False}


def coverage():
    from torch_uncertainty.metrics.classification import AURC

    return _Calls(AURC()), (torch.rand(8, 3).softmax(-1), torch.randint(0, 3, (8,))), {"train": False}


def scoring():
    from torch_uncertainty.metrics.classification import BrierScore

    return _Calls(BrierScore(3)), (torch.rand(8, 3).softmax(-1), torch.randint(0, 3, (8,))), {"train": False}


def false_positives():
    from torch_uncertainty.metrics.classification import FPR95

    return _Calls(FPR95(pos_label=1)), (torch.rand(8), torch.tensor([0, 1, 0, 1, 1, 0, 1, 0])), {"train": False}
