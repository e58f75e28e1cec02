"""Soft dynamic time warping."""

import torch

SOURCE = "pip:pysdtw==0.0.5"
IMPORTS = "pysdtw"


def _loss(**options):
    from pysdtw import SoftDTW

    return SoftDTW(use_cuda=False, **options), (torch.randn(2, 6, 3, requires_grad=True), torch.randn(2, 5, 3))


def loss():
    return _loss()


def band():
    return _loss(bandwidth=3)


def cosine():
    from pysdtw.distance import pairwise_l2_squared

    return _loss(dist_func=pairwise_l2_squared, gamma=0.1)
