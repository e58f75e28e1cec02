"""Hyperbolic layers."""

import torch

SOURCE = "pip:hypll==0.1.1"
IMPORTS = "hypll"


class _Ball(torch.nn.Module):
    def __init__(self, make, dim=-1):
        super().__init__()
        from hypll.manifolds.poincare_ball import Curvature, PoincareBall

        self.manifold, self.dim = PoincareBall(c=Curvature()), dim
        self.layer = make(self.manifold)

    def forward(self, x):
        from hypll.tensors import TangentTensor

        tangents = TangentTensor(data=x, man_dim=self.dim, manifold=self.manifold)
        return self.layer(self.manifold.expmap(tangents)).tensor


def norm():
    from hypll.nn import HBatchNorm

    return _Ball(lambda m: HBatchNorm(6, manifold=m)), (torch.randn(5, 6) * 0.1,)


def norm_by_midpoint():
    from hypll.nn import HBatchNorm2d

    return _Ball(lambda m: HBatchNorm2d(3, manifold=m, use_midpoint=True), 1), (torch.randn(2, 3, 4, 4) * 0.1,)


def pooling():
    from hypll.nn import HAvgPool2d

    return _Ball(lambda m: HAvgPool2d(2, manifold=m), 1), (torch.randn(2, 3, 4, 4) * 0.1,)


def largest():
    from hypll.nn import HMaxPool2d

    return _Ball(lambda m: HMaxPool2d(2, manifold=m), 1), (torch.randn(2, 3, 4, 4) * 0.1,)


def activation():
    from hypll.nn import HReLU

    return _Ball(lambda m: HReLU(manifold=m)), (torch.randn(3, 6) * 0.1,)
