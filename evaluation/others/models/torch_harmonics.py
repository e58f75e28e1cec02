"""Harmonics on the sphere."""

import torch

SOURCE = "pip:torch-harmonics==0.9.3"
IMPORTS = "torch_harmonics"
STUBS = "attention_helpers disco_helpers"

_SHAPE = (8, 16)


def transform():
    from torch_harmonics import RealSHT

    return RealSHT(*_SHAPE), (torch.randn(2, *_SHAPE),)


def inverse_vectors():
    from torch_harmonics import InverseRealVectorSHT

    return InverseRealVectorSHT(*_SHAPE), (torch.randn(2, 2, 4, 4, dtype=torch.complex64),)


def vectors():
    from torch_harmonics import RealVectorSHT

    return RealVectorSHT(*_SHAPE), (torch.randn(2, 2, *_SHAPE),)


def resample():
    from torch_harmonics import ResampleS2

    return ResampleS2(*_SHAPE, 12, 24), (torch.randn(2, 3, *_SHAPE),)


def resample_on_the_sphere():
    from torch_harmonics import ResampleS2

    return ResampleS2(*_SHAPE, 12, 24, mode="bilinear-spherical"), (torch.randn(2, 3, *_SHAPE),)


def convolution():
    from torch_harmonics import DiscreteContinuousConvS2

    return DiscreteContinuousConvS2(3, 4, _SHAPE, _SHAPE, (3,), optimized_kernel=False), (torch.randn(2, 3, *_SHAPE),)


def attention():
    from torch_harmonics import AttentionS2

    return AttentionS2(8, 2, _SHAPE, _SHAPE), (torch.randn(2, 8, *_SHAPE),)


def neighbourhood_attention():
    from torch_harmonics import NeighborhoodAttentionS2

    return NeighborhoodAttentionS2(8, _SHAPE, _SHAPE, num_heads=2, optimized_kernel=False), (
        torch.randn(2, 8, *_SHAPE),
    )


def random_field():
    from torch_harmonics.random_fields import GaussianRandomFieldS2

    return GaussianRandomFieldS2(8), (2,), {"train": False}


def shallow_water():
    from torch_harmonics.examples.shallow_water_equations import ShallowWaterSolver

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.solver = ShallowWaterSolver(8, 16, 100.0)

        def forward(self, state):
            return self.solver.timestep(state, 2)

    return Step(), (torch.randn(3, 4, 4, dtype=torch.complex64),), {"train": False}
