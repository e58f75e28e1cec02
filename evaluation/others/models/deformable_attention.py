"""Attention at offsets that are learned."""

import torch

SOURCE = "pip:deformable-attention==0.0.20"
IMPORTS = "deformable_attention"


def two_d():
    from deformable_attention import DeformableAttention

    return DeformableAttention(
        dim=16, dim_head=8, heads=2, downsample_factor=4, offset_scale=4, offset_kernel_size=6, offset_groups=2
    ), (torch.randn(1, 16, 16, 16),)


def one_d():
    from deformable_attention import DeformableAttention1D

    return DeformableAttention1D(
        dim=16, dim_head=8, heads=2, downsample_factor=4, offset_scale=2, offset_kernel_size=6
    ), (torch.randn(1, 16, 32),)


def three_d():
    from deformable_attention import DeformableAttention3D

    return DeformableAttention3D(
        dim=16,
        dim_head=8,
        heads=2,
        downsample_factor=(2, 4, 4),
        offset_scale=(2, 4, 4),
        offset_kernel_size=(4, 6, 6),
        offset_groups=2,
    ), (torch.randn(1, 16, 4, 8, 8),)
