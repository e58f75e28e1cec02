"""Adversarial networks."""

import torch

SOURCE = "pip:torchgan==0.1.0"
IMPORTS = "torchgan"


def conditional():
    from torchgan.models import ConditionalGANGenerator

    return ConditionalGANGenerator(3, encoding_dims=8, out_size=16, step_channels=4), (
        torch.randn(2, 8),
        torch.tensor([0, 2]),
    )


def conditional_discriminator():
    from torchgan.models import ConditionalGANDiscriminator

    return ConditionalGANDiscriminator(3, in_size=16, step_channels=4), (
        torch.randn(2, 3, 16, 16),
        torch.tensor([0, 2]),
    )


def auxiliary():
    from torchgan.models import ACGANGenerator

    return ACGANGenerator(3, encoding_dims=8, out_size=16, step_channels=4), (torch.randn(2, 8), torch.tensor([0, 2]))


def autoencoder():
    from torchgan.models import AutoEncodingDiscriminator

    return AutoEncodingDiscriminator(in_size=16, encoding_dims=8, step_channels=4), (torch.randn(2, 3, 16, 16),)


def information():
    from torchgan.models import InfoGANDiscriminator

    return InfoGANDiscriminator(3, 2, in_size=16, step_channels=4), (torch.randn(2, 3, 16, 16),)


def equilibrium():
    from torchgan.losses import BoundaryEquilibriumDiscriminatorLoss

    return BoundaryEquilibriumDiscriminatorLoss(), (torch.rand(4), torch.rand(4))


def energy():
    from torchgan.losses import EnergyBasedDiscriminatorLoss

    return EnergyBasedDiscriminatorLoss(), (torch.rand(4), torch.rand(4))


def pulling_away():
    from torchgan.losses import EnergyBasedPullingAwayTerm

    return EnergyBasedPullingAwayTerm(), (torch.rand(4), torch.rand(4, 6))


def wasserstein():
    from torchgan.losses import WassersteinDiscriminatorLoss

    return WassersteinDiscriminatorLoss(), (torch.rand(4), torch.rand(4))


def virtual_norm():
    from torchgan.layers import VirtualBatchNorm

    return VirtualBatchNorm(3), (torch.randn(4, 3, 5, 5),)


def spectral_norm():
    from torchgan.layers import SpectralNorm2d

    return SpectralNorm2d(torch.nn.Conv2d(3, 4, 3)), (torch.randn(2, 3, 6, 6),)


def attention():
    from torchgan.layers import SelfAttention2d

    return SelfAttention2d(8), (torch.randn(2, 8, 5, 5),)


def minibatch_discrimination():
    from torchgan.layers import MinibatchDiscrimination1d

    return MinibatchDiscrimination1d(6, 4), (torch.randn(4, 6),)
