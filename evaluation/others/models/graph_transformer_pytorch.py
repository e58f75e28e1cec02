"""Transformers on graphs."""

import torch

SOURCE = "pip:graph-transformer-pytorch==0.1.1"
IMPORTS = "graph_transformer_pytorch"


def edges():
    from graph_transformer_pytorch import GraphTransformer

    model = GraphTransformer(dim=16, depth=1, dim_head=8, heads=2, edge_dim=4, with_feedforwards=True)
    return model, (torch.randn(1, 6, 16), torch.randn(1, 6, 6, 4), None, torch.ones(1, 6).bool())


def adjacency():
    from graph_transformer_pytorch import GraphTransformer

    model = GraphTransformer(
        dim=16, depth=1, dim_head=8, heads=2, rel_pos_emb=True, accept_adjacency_matrix=True, gated_residual=True
    )
    return model, (torch.randn(1, 6, 16), None, torch.randint(0, 2, (1, 6, 6)), torch.ones(1, 6).bool())
