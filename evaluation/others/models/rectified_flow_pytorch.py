"""Rectified flow and its relatives."""

import torch

SOURCE = "pip:rectified-flow-pytorch==0.14.0"
IMPORTS = "rectified_flow_pytorch"


def _unet(**more):
    from rectified_flow_pytorch import Unet

    return Unet(dim=8, dim_mults=(1, 2), attn_dim_head=8, attn_heads=2, **more)


def rectified():
    from rectified_flow_pytorch import RectifiedFlow

    return RectifiedFlow(_unet()), (torch.randn(2, 3, 16, 16),)


def lap_flow():
    from rectified_flow_pytorch.lap_flow import LapFlow, LapFlowDiT

    model = LapFlowDiT(16, 2, 16, 1, 2, 32, dim_head=8, num_scales=2)
    return LapFlow(model), (torch.randn(2, 3, 16, 16),)


def ua_flow():
    from rectified_flow_pytorch.ua_flow import UAFlow

    return UAFlow(_unet(mean_variance_net=True), times_cond_kwarg="times"), (torch.randn(2, 3, 16, 16),)


def nano():
    from rectified_flow_pytorch.nano_flow import NanoFlow

    return NanoFlow(_unet(), times_cond_kwarg="times"), (torch.randn(2, 3, 16, 16),)


def equilibrium():
    from rectified_flow_pytorch.equilibrium_matching import EquilibriumMatching

    return EquilibriumMatching(_unet()), (torch.randn(2, 3, 16, 16),)
