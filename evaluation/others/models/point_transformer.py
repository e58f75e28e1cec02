"""Attention between points."""

import torch

SOURCE = "pip:point-transformer-pytorch==0.1.5"
IMPORTS = "point_transformer_pytorch"


def layer():
    from point_transformer_pytorch import PointTransformerLayer

    return PointTransformerLayer(dim=8, num_neighbors=4), (
        torch.randn(1, 8, 8),
        torch.randn(1, 8, 3),
        torch.ones(1, 8).bool(),
    )


def multihead():
    from point_transformer_pytorch import MultiheadPointTransformerLayer

    return MultiheadPointTransformerLayer(dim=8, heads=2, dim_head=4), (torch.randn(1, 8, 8), torch.randn(1, 8, 3))
