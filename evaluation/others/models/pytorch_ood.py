"""Losses and detectors for inputs out of the distribution."""

import torch

SOURCE = "pip:pytorch-ood==0.4.0"
IMPORTS = "pytorch_ood"

_LABELS = torch.tensor([0, 1, 2, -1, 1, -2])
_KNOWN = torch.tensor([0, 1, 2, 0, 1, 2])


def _logits():
    return torch.randn(6, 3)


class _Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def anchors():
    from pytorch_ood.loss.cac import CACLoss

    return CACLoss(3), (torch.rand(6, 3), _LABELS)


def center():
    from pytorch_ood.loss.center import CenterLoss

    return CenterLoss(3, 4), (torch.rand(6, 3), _LABELS)


def confidence():
    from pytorch_ood.loss.conf import ConfidenceLoss

    return ConfidenceLoss(), (_logits(), torch.randn(6, 1), _LABELS)


def energy():
    from pytorch_ood.loss.energy import EnergyRegularizedLoss

    return EnergyRegularizedLoss(), (_logits(), _LABELS)


def open_set():
    from pytorch_ood.loss.entropy import EntropicOpenSetLoss

    return EntropicOpenSetLoss(), (_logits(), _LABELS)


def separation():
    from pytorch_ood.loss.ii import IILoss

    return IILoss(3, 4), (torch.randn(6, 4), _LABELS)


def multi_class_hypersphere():
    from pytorch_ood.loss.mchad import MCHADLoss

    return MCHADLoss(3, 4), (torch.rand(6, 3), _LABELS)


def objectosphere():
    from pytorch_ood.loss.objectosphere import ObjectosphereLoss

    return ObjectosphereLoss(), (_logits(), torch.randn(6, 4), _LABELS)


def exposure():
    from pytorch_ood.loss.oe import OutlierExposureLoss

    return OutlierExposureLoss(), (_logits(), _LABELS)


def hypersphere():
    from pytorch_ood.loss.svdd import DeepSADLoss

    return DeepSADLoss(4, center=torch.zeros(4)), (torch.randn(6, 4), torch.tensor([1, -1, 0, 1, 0, -1]))


def outliers():
    from pytorch_ood.loss.vos import VOSRegLoss

    return VOSRegLoss(torch.nn.Linear(1, 2), torch.nn.Linear(3, 1)), (_logits(), _LABELS)


def virtual_outliers():
    from pytorch_ood.loss.vos import VirtualOutlierSynthesizingRegLoss

    loss = VirtualOutlierSynthesizingRegLoss(
        torch.nn.Linear(1, 2), torch.nn.Linear(3, 1), torch.nn.Linear(4, 3), sample_number=2, sample_from=8
    )
    return loss, (_logits(), torch.randn(6, 4), _KNOWN)


def running_centers():
    from pytorch_ood.model.centers import RunningCenters

    return RunningCenters(3, 4), (torch.randn(6, 4),)


def energy_score():
    from pytorch_ood.detector import EnergyBased

    return _Calls(EnergyBased(torch.nn.Linear(4, 3))), (torch.randn(6, 4),), {"train": False}


def odin():
    from pytorch_ood.detector import ODIN

    return _Calls(ODIN(torch.nn.Linear(4, 3))), (torch.randn(6, 4),), {"train": False}


def mahalanobis():
    from pytorch_ood.detector import Mahalanobis

    detector = Mahalanobis(torch.nn.Identity())
    detector.fit_features(torch.randn(12, 4), torch.arange(12) % 3)
    return _Calls(detector.predict_features), (torch.randn(6, 4),), {"train": False}
