"""Sparsely gated mixture of experts."""

import torch

SOURCE = "github:davidmrau/mixture-of-experts@f662999727109357c42074997e9a6cd72806f668"
IMPORTS = "moe"


def moe():
    from moe import MoE

    return MoE(6, 3, 4, 8, noisy_gating=True, k=2), (torch.randn(5, 6),)


def moe_eval():
    from moe import MoE

    return MoE(6, 3, 4, 8, noisy_gating=True, k=2), (torch.randn(5, 6),), {"train": False}
