"""Sparse mixture of experts."""

import torch

SOURCE = "pip:st-moe-pytorch==0.1.8"
IMPORTS = "st_moe_pytorch"


def moe():
    from st_moe_pytorch import MoE

    return MoE(dim=8, num_experts=4, gating_top_n=2), (torch.randn(2, 6, 8),)


def block():
    from st_moe_pytorch import MoE, SparseMoEBlock

    return SparseMoEBlock(MoE(dim=8, num_experts=4)), (torch.randn(2, 6, 8),)
