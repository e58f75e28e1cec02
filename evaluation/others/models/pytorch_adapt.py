"""Layers of domain adaptation."""

import torch

SOURCE = "pip:pytorch-adapt==0.0.83"
IMPORTS = "pytorch_adapt.layers"
STUBS = "pytorch_metric_learning"


def _pair():
    return torch.randn(6, 8), torch.randn(6, 8)


def discrepancy():
    from pytorch_adapt.layers import MMDLoss

    return MMDLoss(), _pair()


def correlation():
    from pytorch_adapt.layers import CORALLoss

    return CORALLoss(), _pair()


def spectral():
    from pytorch_adapt.layers import BatchSpectralLoss

    return BatchSpectralLoss(2), _pair()[:1]


def feature_norm():
    from pytorch_adapt.layers import AdaptiveFeatureNorm

    return AdaptiveFeatureNorm(), _pair()[:1]


def preserved_dropout():
    from pytorch_adapt.layers import L2PreservedDropout

    return L2PreservedDropout(), _pair()[:1]


def confusion():
    from pytorch_adapt.layers import MCCLoss

    return MCCLoss(), (torch.randn(6, 4),)


def neighbours():
    from pytorch_adapt.layers import NeighborhoodAggregation

    return NeighborhoodAggregation(12, feature_dim=8, num_classes=4), (
        torch.randn(6, 8), torch.randn(6, 4), True, torch.arange(6),
    )  # fmt: skip


def random_map():
    from pytorch_adapt.layers import RandomizedDotProduct

    return RandomizedDotProduct([8, 4], 8), (torch.randn(6, 8), torch.randn(6, 4))


def diversity():
    from pytorch_adapt.layers import DiversityLoss

    return DiversityLoss(), (torch.randn(6, 4),)


def sliced():
    from pytorch_adapt.layers import SlicedWasserstein

    return SlicedWasserstein(), _pair()
