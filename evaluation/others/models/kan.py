"""Kolmogorov-Arnold networks."""

import torch

SOURCE = "pip:pykan==0.2.8"
IMPORTS = "kan"


def multkan():
    from kan import KAN

    return KAN(width=[2, 3, 1], grid=3, k=3, seed=0, auto_save=False), (torch.rand(4, 2),)


def layer():
    from kan.KANLayer import KANLayer

    return KANLayer(2, 3), (torch.rand(4, 2),)
