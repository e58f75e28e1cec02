"""Conditional random field."""

import torch

SOURCE = "pip:TorchCRF==1.1.0"
IMPORTS = "TorchCRF"


def likelihood():
    from TorchCRF import CRF

    return CRF(4), (torch.randn(2, 5, 4), torch.randint(0, 4, (2, 5)), torch.ones(2, 5).bool())
