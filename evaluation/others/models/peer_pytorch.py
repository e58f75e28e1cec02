"""Many small experts."""

import torch

SOURCE = "pip:PEER-pytorch==0.2.2"
IMPORTS = "PEER_pytorch"


def peer():
    from PEER_pytorch import PEER

    return PEER(dim=16, heads=2, num_experts=64, num_experts_per_head=4, dim_key=8), (torch.randn(2, 8, 16),)
