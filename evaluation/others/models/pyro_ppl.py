"""Distributions, transforms and networks of a probabilistic language."""

import torch

SOURCE = "pip:pyro-ppl==1.9.2"
IMPORTS = "pyro"


class _Transform(torch.nn.Module):
    """A transform forth and back, and what its determinant is."""

    def __init__(self, transform):
        super().__init__()
        self.transform = transform

    def forward(self, x):
        y = self.transform._call(x)
        return y, self.transform.log_abs_det_jacobian(x, y)


def spline():
    from pyro.distributions.transforms import Spline

    return _Transform(Spline(3, count_bins=4, bound=3.0)), (torch.randn(8, 3),)


def spline_coupling():
    from pyro.distributions.transforms import spline_coupling

    return _Transform(spline_coupling(4, hidden_dims=[8])), (torch.randn(8, 4),)


def affine_coupling():
    from pyro.distributions.transforms import affine_coupling

    return _Transform(affine_coupling(4, hidden_dims=[8])), (torch.randn(8, 4),)


def sylvester():
    from pyro.distributions.transforms import sylvester

    return _Transform(sylvester(4, count_transforms=2)), (torch.randn(8, 4),)


def batch_norm():
    from pyro.distributions.transforms import batchnorm

    return _Transform(batchnorm(4)), (torch.randn(8, 4),)


def autoregressive():
    from pyro.nn import AutoRegressiveNN

    return AutoRegressiveNN(4, [8], param_dims=(1, 1)), (torch.randn(8, 4),)


def gaussian_process():
    from pyro.contrib import gp

    kernel = gp.kernels.RBF(2, lengthscale=torch.tensor(0.7))
    return kernel, (torch.randn(6, 2),)


class _LogProb(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, parameter, value):
        return self.make(parameter).log_prob(value)


def zero_inflated():
    from pyro.distributions import ZeroInflatedPoisson

    made = _LogProb(lambda rate: ZeroInflatedPoisson(rate, gate=torch.tensor(0.3)))
    return made, (torch.rand(4), torch.tensor([0.0, 1.0, 2.0, 0.0]))


def ordered_logistic():
    from pyro.distributions import OrderedLogistic

    made = _LogProb(lambda x: OrderedLogistic(x, torch.tensor([-1.0, 0.0, 1.0])))
    return made, (torch.randn(4), torch.tensor([0, 1, 3, 2]))


def stable():
    from pyro.distributions import Stable

    class Draw(torch.nn.Module):
        def forward(self, alpha):
            return Stable(alpha, torch.tensor(0.1)).rsample()

    return Draw(), (torch.full((4,), 1.5),)


def hidden_markov():
    from pyro.distributions import DiscreteHMM, Normal

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.initial, self.transition = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(3, 3))
            self.mean = torch.nn.Parameter(torch.randn(3))

        def forward(self, x):
            return DiscreteHMM(self.initial, self.transition, Normal(self.mean, 1.0)).log_prob(x)

    return Model(), (torch.randn(2, 5),)
