"""Mixtures and clusters."""

import torch

SOURCE = "pip:torchgmm==0.1.4"
IMPORTS = "torchgmm"
STUBS = "torchvision"


def _mixture(kind):
    from torchgmm.bayes.gmm.model import GaussianMixtureModel, GaussianMixtureModelConfig

    model = GaussianMixtureModel(GaussianMixtureModelConfig(3, 2, kind))
    for buffer in model.buffers():
        buffer.fill_(0.5)
    return model, (torch.randn(6, 2),), {"train": False}


def diagonal():
    return _mixture("diag")


def full():
    return _mixture("full")


def spherical():
    return _mixture("spherical")


def means():
    from torchgmm.clustering.kmeans.model import KMeansModel, KMeansModelConfig

    return KMeansModel(KMeansModelConfig(3, 2)), (torch.randn(6, 2),), {"train": False}
