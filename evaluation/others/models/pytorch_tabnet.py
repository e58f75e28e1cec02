"""Attentive networks for tables."""

import torch

SOURCE = "pip:pytorch-tabnet==4.1.0"
IMPORTS = "pytorch_tabnet"


def tabnet():
    from pytorch_tabnet.tab_network import TabNet

    return TabNet(
        6, 2, n_d=4, n_a=4, n_steps=2, cat_idxs=[0], cat_dims=[3], cat_emb_dim=[2], group_attention_matrix=torch.eye(6)
    ), (torch.cat([torch.randint(0, 3, (8, 1)).float(), torch.randn(8, 5)], 1),)


def pretraining():
    from pytorch_tabnet.tab_network import TabNetPretraining

    return TabNetPretraining(6, n_d=4, n_a=4, n_steps=2, group_attention_matrix=torch.eye(6)), (torch.randn(8, 6),)
