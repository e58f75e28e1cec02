"""Informer: attention of the queries that matter."""

import torch

SOURCE = "github:zhouhaoyi/Informer2020@29f2a739226a509202a092b464163da81fa74960"
IMPORTS = "models"


def informer():
    from models.model import Informer

    model = Informer(
        3, 3, 3, 16, 8, 8, factor=3, d_model=16, n_heads=2, e_layers=2, d_layers=1, d_ff=16, device=torch.device("cpu")
    )
    return model, (torch.randn(2, 16, 3), torch.randn(2, 16, 4), torch.randn(2, 16, 3), torch.randn(2, 16, 4))
