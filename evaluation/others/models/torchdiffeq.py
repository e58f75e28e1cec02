"""Solvers of differential equations."""

import torch

SOURCE = "pip:torchdiffeq==0.2.5"
IMPORTS = "torchdiffeq"


class _Solve(torch.nn.Module):
    def __init__(self, method, adjoint=False):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.method = method
        self.adjoint = adjoint
        self.field = _Field(self.layer)

    def forward(self, x, times):
        from torchdiffeq import odeint, odeint_adjoint

        return (odeint_adjoint if self.adjoint else odeint)(self.field, x, times, method=self.method)


class _Field(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, t, x):
        return torch.tanh(self.layer(x))


def dopri5():
    return _Solve("dopri5"), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def adjoint():
    return _Solve("dopri5", adjoint=True), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def rk4():
    return _Solve("rk4"), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def explicit_adams():
    return _Solve("explicit_adams"), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def bosh3():
    return _Solve("bosh3"), (torch.randn(2, 3), torch.linspace(0, 1, 3))
