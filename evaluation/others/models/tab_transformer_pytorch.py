"""Transformers for tables."""

import torch

SOURCE = "pip:tab-transformer-pytorch==0.6.1"
IMPORTS = "tab_transformer_pytorch"


def _rows():
    return torch.randint(0, 3, (2, 2)), torch.randn(2, 4)


def categories():
    from tab_transformer_pytorch import TabTransformer

    return TabTransformer(
        categories=(3, 4), num_continuous=4, dim=8, depth=1, heads=2, mlp_act=torch.nn.ReLU()
    ), _rows()


def normalized():
    from tab_transformer_pytorch import TabTransformer

    model = TabTransformer(
        categories=(3, 4),
        num_continuous=4,
        dim=8,
        depth=1,
        heads=2,
        mlp_act=torch.nn.ReLU(),
        continuous_mean_std=torch.rand(4, 2),
    )
    return model, _rows()


def features():
    from tab_transformer_pytorch import FTTransformer

    return FTTransformer(categories=(3, 4), num_continuous=4, dim=8, depth=1, heads=2), _rows()
