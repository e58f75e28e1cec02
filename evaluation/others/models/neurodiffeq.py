"""Differential equations."""

import torch

SOURCE = "pip:neurodiffeq==0.7.0"
IMPORTS = "neurodiffeq"


class _Residual(torch.nn.Module):
    def __init__(self, condition, equation, inputs=1, outputs=1):
        super().__init__()
        from neurodiffeq.networks import FCNN

        self.network = FCNN(inputs, outputs, hidden_units=(8,))
        self.condition, self.equation = condition, equation

    def forward(self, *coordinates):
        return self.equation(self.condition.enforce(self.network, *coordinates), *coordinates)


def _points():
    return torch.linspace(0.1, 1, 10).reshape(-1, 1).requires_grad_()


def initial_value():
    from neurodiffeq import diff
    from neurodiffeq.conditions import IVP

    return _Residual(IVP(0.0, 1.0), lambda u, t: diff(u, t) + u), (_points(),)


def boundary():
    from neurodiffeq import diff
    from neurodiffeq.conditions import DirichletBVP

    return _Residual(DirichletBVP(0.0, 1.0, 1.0, 0.0), lambda u, t: diff(u, t, order=2) + u), (_points(),)


def plane():
    from neurodiffeq import diff
    from neurodiffeq.conditions import DirichletBVP2D

    condition = DirichletBVP2D(0.0, torch.sin, 1.0, torch.sin, 0.0, torch.sin, 1.0, torch.sin)
    return _Residual(condition, lambda u, x, y: diff(u, x) + diff(u, y), 2), (_points(), _points())


def harmonics():
    from neurodiffeq.function_basis import ZonalSphericalHarmonics

    class Basis(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.basis = ZonalSphericalHarmonics(max_degree=3)

        def forward(self, theta, phi):
            return self.basis(theta, phi)

    return Basis(), (torch.rand(5, 1), torch.rand(5, 1))


def monomials():
    from neurodiffeq.networks import MonomialNN

    return MonomialNN([1, 2, 3]), (_points(),)


def curl():
    from neurodiffeq.operators import curl

    class Curl(torch.nn.Module):
        def forward(self, x, y, z):
            return curl(x * y, y * z, z * x, x, y, z)

    return Curl(), (_points(), _points(), _points())
