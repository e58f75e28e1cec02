"""Geometry of manifolds."""

import torch

SOURCE = "pip:geoopt==0.5.1"
IMPORTS = "geoopt"


class _Distance(torch.nn.Module):
    def __init__(self, manifold):
        super().__init__()
        self.manifold = manifold

    def forward(self, x, y):
        return self.manifold.dist(self.manifold.projx(x), self.manifold.projx(y))


def poincare():
    import geoopt

    return _Distance(geoopt.PoincareBall()), (torch.rand(3, 4, requires_grad=True) * 0.3, torch.rand(3, 4) * 0.3)


def sphere():
    import geoopt

    return _Distance(geoopt.Sphere()), (torch.rand(3, 4), torch.rand(3, 4))


def stereographic():
    import geoopt

    return _Distance(geoopt.Stereographic(learnable=True)), (torch.rand(3, 4) * 0.3, torch.rand(3, 4) * 0.3)


def spd():
    import geoopt

    return _Distance(geoopt.SymmetricPositiveDefinite()), (
        torch.eye(3).expand(2, 3, 3) * 2,
        torch.eye(3).expand(2, 3, 3) * 3,
    )
