"""Supervised contrastive loss."""

import torch

SOURCE = "github:HobbitLong/SupContrast@66a8fe53880d6a1084b2e4e0db0a019024d6d41a"
IMPORTS = "losses"


def sup_con_loss():
    from losses import SupConLoss

    return SupConLoss(), (
        torch.nn.functional.normalize(torch.randn(4, 2, 8), dim=-1).requires_grad_(),
        torch.tensor([0, 1, 0, 1]),
    )
