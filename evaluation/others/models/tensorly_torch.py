"""Layers of factorized tensors."""

import torch

SOURCE = "pip:tensorly-torch==0.5.0"
IMPORTS = "tltorch"


def linear():
    from tltorch import FactorizedLinear

    return FactorizedLinear((2, 4), (4, 2), rank=0.5, factorization="tucker"), (torch.randn(3, 8),)


def embedding():
    from tltorch import FactorizedEmbedding

    return FactorizedEmbedding(16, 8, rank=4), (torch.randint(0, 16, (2, 5)),)


def regression():
    from tltorch import TRL

    return TRL((4, 4), (3,), rank=0.5), (torch.randn(2, 4, 4),)


def contraction():
    from tltorch import TCL

    return TCL((4, 4), (2, 2)), (torch.randn(2, 4, 4),)
