"""Recommendation."""

import torch

SOURCE = "pip:recbole==1.2.1"
IMPORTS = "recbole"


def transformer_encoder():
    from recbole.model.layers import TransformerEncoder

    return TransformerEncoder(n_layers=1, n_heads=2, hidden_size=8, inner_size=8), (
        torch.randn(2, 5, 8),
        torch.zeros(2, 1, 1, 5),
    )


def attention_layer():
    from recbole.model.layers import SequenceAttLayer

    return SequenceAttLayer(
        3, att_hidden_size=(8, 4), activation="sigmoid", softmax_stag=False, return_seq_weight=False
    ), (torch.randn(2, 4), torch.randn(2, 3, 4), torch.tensor([2, 3]))


def registration_loss():
    from recbole.model.loss import EmbLoss

    return EmbLoss(), (torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True))


def sparse_dropout():
    from recbole.model.layers import SparseDropout

    return SparseDropout(0.5), (torch.eye(4).to_sparse(),)
