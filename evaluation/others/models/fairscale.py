"""Training at scale."""

import torch

SOURCE = "pip:fairscale==0.4.13"
IMPORTS = "fairscale"


def moe_gate():
    from fairscale.nn.moe import Top2Gate

    return Top2Gate(8, 4), (torch.randn(6, 8),)


def checkpoint():
    from fairscale.nn.misc import FlattenParamsWrapper

    return FlattenParamsWrapper(torch.nn.Linear(4, 4)), (torch.randn(2, 4),)
