"""Mamba in Python."""

import torch

SOURCE = "pip:mambapy==1.2.0"
IMPORTS = "mambapy"


def mamba():
    from mambapy.mamba import Mamba, MambaConfig

    return Mamba(MambaConfig(d_model=8, n_layers=1)), (torch.randn(1, 6, 8),)
