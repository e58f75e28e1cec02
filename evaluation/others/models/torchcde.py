"""Controlled differential equations."""

import torch

SOURCE = "pip:torchcde==0.2.5"
IMPORTS = "torchcde"


class _Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 6)

    def forward(self, t, z):
        return self.layer(z).view(-1, 3, 2)


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.field = _Field()

    def forward(self, x):
        import torchcde

        path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(x))
        return torchcde.cdeint(
            X=path, func=self.field, z0=torch.zeros(2, 3), t=path.interval, adjoint=False, method="rk4"
        )


class _Coefficients(torch.nn.Module):
    def forward(self, x):
        import torchcde

        return torchcde.natural_cubic_coeffs(x)


def neural_cde():
    return _Model(), (torch.randn(2, 5, 2),)


def coefficients():
    return _Coefficients(), (torch.randn(2, 5, 2),)
