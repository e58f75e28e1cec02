"""Losses of forecasts."""

import torch

SOURCE = "pip:neuralforecast==3.3.0"
IMPORTS = "neuralforecast"
STUBS = "ray optuna coreforecast utilsforecast"


def _series():
    return torch.rand(2, 6, 1) + 1, torch.rand(2, 6, 1, requires_grad=True) + 1


def _masked():
    return (*_series(), torch.randint(0, 2, (2, 6, 1)).float())


def symmetric():
    from neuralforecast.losses.pytorch import SMAPE

    return SMAPE(), _masked()


def quantiles():
    from neuralforecast.losses.pytorch import MQLoss

    return MQLoss(level=[80]), (torch.rand(2, 6, 1), torch.rand(2, 6, 1, 3, requires_grad=True))


def student():
    from neuralforecast.losses.pytorch import DistributionLoss

    loss = DistributionLoss("StudentT")
    arguments = tuple(torch.rand(2, 6, 1, requires_grad=True) + 1 for _ in range(3))
    return loss, (torch.rand(2, 6, 1), arguments)


def mixture():
    from neuralforecast.losses.pytorch import GMM

    return GMM(n_components=2), (
        torch.rand(2, 6, 1),
        (torch.rand(2, 6, 1, 2, requires_grad=True), torch.rand(2, 6, 1, 2) + 1),
    )


def poisson_mixture():
    from neuralforecast.losses.pytorch import PMM

    return PMM(n_components=2), (torch.rand(2, 6, 1).round(), (torch.rand(2, 6, 1, 2, requires_grad=True) + 1,))


def tukey():
    from neuralforecast.losses.pytorch import TukeyLoss

    return TukeyLoss(), _masked()


def huber():
    from neuralforecast.losses.pytorch import HuberLoss

    return HuberLoss(), _masked()
