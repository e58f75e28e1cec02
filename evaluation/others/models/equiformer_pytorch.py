"""Equivariant transformers on graphs in space."""

import torch

SOURCE = "pip:equiformer-pytorch==0.5.4"
IMPORTS = "equiformer_pytorch"

_OPTIONS = {"dim": (8, 4), "dim_head": (4, 4), "heads": (2, 2), "depth": 1, "num_degrees": 2}


def distances():
    from equiformer_pytorch import Equiformer

    model = Equiformer(num_tokens=10, num_linear_attn_heads=0, reduce_dim_out=True, attend_self=True, **_OPTIONS)
    return model, (torch.randint(0, 10, (1, 8)), torch.randn(1, 8, 3), torch.ones(1, 8).bool())


def perceptron():
    from equiformer_pytorch import Equiformer

    model = Equiformer(num_tokens=10, l2_dist_attention=False, num_neighbors=3, **_OPTIONS)
    return model, (torch.randint(0, 10, (1, 8)), torch.randn(1, 8, 3), torch.ones(1, 8).bool())


def feed_forward():
    from equiformer_pytorch.equiformer_pytorch import LinearAttention

    return LinearAttention(8, dim_head=4, heads=2), (torch.randn(1, 6, 8), torch.ones(1, 6).bool())
