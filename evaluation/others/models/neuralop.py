"""Neural operators."""

import torch

SOURCE = "pip:neuraloperator==2.0.0"
IMPORTS = "neuralop"


def fno():
    from neuralop.models import FNO

    return FNO(n_modes=(4, 4), in_channels=1, out_channels=1, hidden_channels=8, n_layers=1), (torch.rand(1, 1, 8, 8),)


def lp_loss():
    from neuralop.losses import H1Loss

    return H1Loss(d=2), (torch.rand(1, 1, 8, 8, requires_grad=True), torch.rand(1, 1, 8, 8))
