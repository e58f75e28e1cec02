"""Sparse mixture of experts."""

import torch

SOURCE = "pip:mixture-of-experts==0.2.3"
IMPORTS = "mixture_of_experts"


def moe():
    from mixture_of_experts import MoE

    return MoE(dim=8, num_experts=4), (torch.randn(2, 6, 8),)


def hierarchical():
    from mixture_of_experts import HeirarchicalMoE

    return HeirarchicalMoE(dim=8, num_experts=(2, 2)), (torch.randn(2, 6, 8),)
