"""Weather."""

import torch

SOURCE = "pip:metnet3-pytorch==0.0.12"
IMPORTS = "metnet3_pytorch"


def maxvit():
    from metnet3_pytorch.metnet3_pytorch import MaxViT

    return MaxViT(dim=16, depth=1, cond_dim=4, heads=2, dim_head=8, window_size=4, dropout=0.0), (
        torch.randn(1, 16, 8, 8),
        torch.randn(1, 4),
    )
