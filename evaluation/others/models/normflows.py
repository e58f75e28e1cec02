"""Normalizing flows."""

import torch

SOURCE = "pip:normflows==1.7.3"
IMPORTS = "normflows"


def coupled_spline():
    import normflows as nf

    return nf.flows.CoupledRationalQuadraticSpline(4, 1, 8, num_bins=4), (torch.randn(5, 4),)


def autoregressive_spline():
    import normflows as nf

    return nf.flows.AutoregressiveRationalQuadraticSpline(4, 1, 8, num_bins=4), (torch.randn(5, 4),)


def circular_spline():
    import normflows as nf

    return nf.flows.CircularCoupledRationalQuadraticSpline(4, 1, 8, [0, 2], num_bins=4), (torch.rand(5, 4),)


def residual():
    import normflows as nf

    return nf.flows.Residual(nf.nets.LipschitzMLP([4, 8, 4])), (torch.randn(5, 4),)


def act_norm():
    import normflows as nf

    return nf.flows.ActNorm((4,)), (torch.randn(5, 4),)


def glow_block():
    import normflows as nf

    return nf.flows.GlowBlock(4, 8), (torch.randn(2, 4, 4, 4),)


def real_nvp_kld():
    import normflows as nf

    flows = [
        nf.flows.MaskedAffineFlow(torch.tensor([0.0, 1.0]), nf.nets.MLP([2, 8, 2]), nf.nets.MLP([2, 8, 2])),
        nf.flows.ActNorm(2),
    ]
    return nf.NormalizingFlow(nf.distributions.DiagGaussian(2), flows), (torch.randn(5, 2),)


def planar():
    import normflows as nf

    return nf.flows.Planar((4,), act="leaky_relu"), (torch.randn(5, 4),)


def invertible_affine():
    import normflows as nf

    return nf.flows.InvertibleAffine(4), (torch.randn(5, 4),)
