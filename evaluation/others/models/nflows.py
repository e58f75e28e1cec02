"""Normalizing flows."""

import torch

SOURCE = "pip:nflows==0.14"
IMPORTS = "nflows"


def rational_quadratic_coupling():
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import PiecewiseRationalQuadraticCouplingTransform

    return PiecewiseRationalQuadraticCouplingTransform(
        torch.tensor([0, 1, 0, 1]), lambda i, o: ResidualNet(i, o, 8), num_bins=4, tails="linear", tail_bound=1.0
    ), (torch.randn(5, 4),)


def quadratic_coupling():
    from nflows.nn.nets import ResidualNet
    from nflows.transforms import PiecewiseQuadraticCouplingTransform

    return PiecewiseQuadraticCouplingTransform(
        torch.tensor([0, 1, 0, 1]), lambda i, o: ResidualNet(i, o, 8), num_bins=4, tails="linear", tail_bound=1.0
    ), (torch.randn(5, 4),)


def maf():
    from nflows.transforms import MaskedPiecewiseRationalQuadraticAutoregressiveTransform

    return MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        4, 8, num_bins=4, tails="linear", tail_bound=1.0, num_blocks=1
    ), (torch.randn(5, 4),)


def lu_linear():
    from nflows.transforms import LULinear

    return LULinear(4), (torch.randn(5, 4),)


def batch_norm():
    from nflows.transforms import BatchNorm

    return BatchNorm(4), (torch.randn(5, 4),)


def act_norm():
    from nflows.transforms import ActNorm

    return ActNorm(4), (torch.randn(5, 4),)


def random_permutation():
    from nflows.transforms import CompositeTransform, HouseholderSequence, NaiveLinear, RandomPermutation, SVDLinear

    return CompositeTransform([RandomPermutation(4), SVDLinear(4, 2), NaiveLinear(4), HouseholderSequence(4, 2)]), (
        torch.randn(5, 4),
    )


def sigmoid():
    from nflows.transforms import CompositeTransform, Logit, Sigmoid

    return CompositeTransform([Sigmoid(), Logit()]), (torch.randn(5, 4),)
