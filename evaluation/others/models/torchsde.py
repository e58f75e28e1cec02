"""Solvers of stochastic differential equations."""

import torch

SOURCE = "pip:torchsde==0.2.6"
IMPORTS = "torchsde"


class _Field(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.drift, self.diffusion = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.diffusion(y).sigmoid()


class _Solve(torch.nn.Module):
    def __init__(self, method):
        super().__init__()
        self.field, self.method = _Field(), method

    def forward(self, x, times):
        import torchsde

        return torchsde.sdeint(self.field, x, times, method=self.method, dt=0.25)


def euler():
    return _Solve("euler"), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def milstein():
    return _Solve("milstein"), (torch.randn(2, 3), torch.linspace(0, 1, 3))


def srk():
    return _Solve("srk"), (torch.randn(2, 3), torch.linspace(0, 1, 3))
