"""Learned compression."""

import torch

SOURCE = "pip:compressai==1.2.8"
IMPORTS = "compressai"
STUBS = (
    "compressai._CXX compressai.ans pytorch_msssim torchvision torchvision.transforms "
    "torch_geometric torch_geometric.transforms torch_geometric.data torch_geometric.data.datapipes "
    "torch_geometric.utils torch_geometric.io pointops pyntcloud"
)


def bottleneck():
    from compressai.entropy_models import EntropyBottleneck

    return EntropyBottleneck(4), (torch.randn(2, 4, 4, 4),)


def bottleneck_called():
    from compressai.entropy_models import EntropyBottleneck

    return EntropyBottleneck(4), (torch.randn(2, 4, 4, 4),), {"train": False}


def mixture():
    from compressai.entropy_models import GaussianMixtureConditional

    return GaussianMixtureConditional(K=2), (
        torch.randn(2, 4, 4, 4),
        torch.rand(2, 8, 4, 4),
        torch.randn(2, 8, 4, 4),
        torch.rand(2, 8, 4, 4),
    )


def hyperprior():
    from compressai.models import MeanScaleHyperprior

    return MeanScaleHyperprior(8, 8), (torch.rand(1, 3, 64, 64),)


def autoregressive():
    from compressai.models import JointAutoregressiveHierarchicalPriors

    return JointAutoregressiveHierarchicalPriors(8, 8), (torch.rand(1, 3, 64, 64),)


def checkerboard():
    from compressai.models import Cheng2020AnchorCheckerboard

    return Cheng2020AnchorCheckerboard(8), (torch.rand(1, 3, 64, 64),)


def variable_rate():
    from compressai.models import ScaleHyperpriorVbr

    return ScaleHyperpriorVbr(8, 8), (torch.rand(1, 3, 64, 64),)


def video():
    from compressai.models.video import ScaleSpaceFlow

    return ScaleSpaceFlow(num_levels=2), ([torch.rand(1, 3, 128, 128) for _ in range(2)],), {"train": False}
