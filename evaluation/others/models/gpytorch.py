"""Gaussian processes."""

import torch

SOURCE = "pip:gpytorch==1.15.2"
IMPORTS = "gpytorch"


class _Kernel(torch.nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel

    def forward(self, x, y):
        return self.kernel(x, y).to_dense()


def rbf():
    from gpytorch.kernels import RBFKernel, ScaleKernel

    return _Kernel(ScaleKernel(RBFKernel(ard_num_dims=2))), (torch.rand(5, 2), torch.rand(4, 2))


def matern():
    from gpytorch.kernels import MaternKernel

    return _Kernel(MaternKernel(2.5)), (torch.rand(5, 2), torch.rand(4, 2))


def spectral_mixture():
    from gpytorch.kernels import PeriodicKernel

    return _Kernel(PeriodicKernel()), (torch.rand(5, 2), torch.rand(4, 2))
