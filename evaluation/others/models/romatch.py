"""Dense matching."""

import torch

SOURCE = "pip:romatch==0.1.2"
IMPORTS = "romatch"
STUBS = "wandb"


def gaussian_process():
    from romatch.models.matcher import GP, CosKernel

    return GP(CosKernel, T=0.2, gp_dim=16), (torch.randn(1, 8, 6, 6), torch.randn(1, 8, 6, 6)), {"train": False}


class _Loss(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        from romatch.losses.robust_loss import RobustLosses

        self.loss, self.name = RobustLosses(local_dist={1: 4, 2: 4}), name

    def forward(self, *inputs):
        return getattr(self.loss, self.name)(*inputs, 1)
