"""Ensembles of networks for tables."""

import torch

SOURCE = "pip:tabm==0.0.3"
IMPORTS = "tabm"


def tabm_numbers():
    from tabm import TabM

    return TabM(
        n_num_features=4, d_out=2, k=4, n_blocks=2, d_block=16, dropout=0.0, start_scaling_init="random-signs"
    ), (torch.randn(4, 4),)


def tabm_categories():
    from tabm import TabM

    model = TabM(
        n_num_features=4,
        cat_cardinalities=[3, 5],
        d_out=2,
        k=4,
        n_blocks=2,
        d_block=16,
        dropout=0.0,
        start_scaling_init="random-signs",
    )
    return model, (torch.randn(4, 4), torch.randint(0, 3, (4, 2)))
