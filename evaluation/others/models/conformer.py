"""Convolutions and attention for speech."""

import torch

SOURCE = "pip:conformer==0.3.2"
IMPORTS = "conformer"


def network():
    from conformer import Conformer

    return Conformer(16, depth=2, heads=2, dim_head=8, conv_kernel_size=5), (torch.randn(2, 10, 16),)


def masked_block():
    from conformer import ConformerBlock

    return ConformerBlock(dim=16, heads=2, dim_head=8, conv_kernel_size=5), (
        torch.randn(2, 10, 16),
        torch.ones(2, 10, dtype=torch.bool),
    )


def convolution():
    from conformer import ConformerConvModule

    return ConformerConvModule(16, causal=True, kernel_size=5), (torch.randn(2, 10, 16),)
