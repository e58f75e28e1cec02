"""Soft mixture of experts."""

import torch

SOURCE = "pip:soft-moe-pytorch==0.1.9"
IMPORTS = "soft_moe_pytorch"


def soft_moe():
    from soft_moe_pytorch import SoftMoE

    return SoftMoE(dim=8, seq_len=6, num_experts=2), (torch.randn(2, 6, 8),)


def dynamic_slots():
    from soft_moe_pytorch import DynamicSlotsSoftMoE

    return DynamicSlotsSoftMoE(dim=8, num_experts=2), (torch.randn(2, 6, 8),)
