"""Networks that solve differential equations."""

import torch

SOURCE = "pip:torchphysics==1.1.2"
IMPORTS = "torchphysics"
STUBS = "pytorch_lightning trimesh rtree"


def _spaces():
    import torchphysics as tp

    return tp.spaces.R2("x"), tp.spaces.R1("u")


def _points():
    import torchphysics as tp

    return tp.spaces.Points(torch.rand(5, 2), tp.spaces.R2("x"))


class _OnPoints(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        import torchphysics as tp

        return self.model(tp.spaces.Points(x, tp.spaces.R2("x"))).as_tensor


def connected():
    from torchphysics.models import FCN

    return _OnPoints(FCN(*_spaces(), hidden=(8, 8))), (torch.rand(5, 2),)


def ritz():
    from torchphysics.models import DeepRitzNet

    return _OnPoints(DeepRitzNet(*_spaces(), 8, 2)), (torch.rand(5, 2),)


def harmonic():
    from torchphysics.models import Harmonic_FCN

    return _OnPoints(Harmonic_FCN(*_spaces(), 3, hidden=(8,))), (torch.rand(5, 2),)


def quadratic():
    from torchphysics.models import QRES

    return _OnPoints(QRES(*_spaces(), hidden=(8, 8))), (torch.rand(5, 2),)


def fourier():
    import torchphysics as tp
    from torchphysics.models import FNO

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = FNO(tp.spaces.R1("f"), tp.spaces.R1("u"), 2, 4, 3)

        def forward(self, x):
            return self.model(tp.spaces.Points(x, tp.spaces.R1("f"))).as_tensor

    return Model(), (torch.rand(2, 16, 1),)


def derivatives():
    from torchphysics.utils import laplacian

    class Laplacian(torch.nn.Module):
        def forward(self, x):
            return laplacian((x**3).sum(dim=1, keepdim=True), x)

    return Laplacian(), (torch.rand(5, 2, requires_grad=True),), {"train": False}
