"""Equivariant graph networks."""

import torch

SOURCE = "pip:egnn-pytorch==0.2.8"
IMPORTS = "egnn_pytorch"


def egnn():
    from egnn_pytorch import EGNN

    return EGNN(dim=8, edge_dim=4, num_nearest_neighbors=3), (
        torch.randn(1, 6, 8),
        torch.randn(1, 6, 3),
        torch.randn(1, 6, 6, 4),
    )


def network():
    from egnn_pytorch import EGNN_Network

    return EGNN_Network(
        num_tokens=8,
        dim=8,
        depth=2,
        num_nearest_neighbors=3,
        num_positions=6,
        only_sparse_neighbors=True,
        num_adj_degrees=2,
        adj_dim=4,
    ), {
        "feats": torch.randint(0, 8, (1, 6)),
        "coors": torch.randn(1, 6, 3),
        "adj_mat": torch.eye(6).roll(1, 0).bool() | torch.eye(6).roll(-1, 0).bool(),
        "mask": torch.ones(1, 6).bool(),
    }
