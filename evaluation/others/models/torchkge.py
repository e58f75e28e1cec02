"""Embeddings of knowledge graphs."""

import torch

SOURCE = "pip:torchkge==0.17.7"
IMPORTS = "torchkge"


def transe():
    from torchkge.models import TransEModel

    return TransEModel(4, 5, 2), (
        torch.tensor([0, 1]),
        torch.tensor([1, 2]),
        torch.tensor([0, 1]),
        torch.tensor([3, 4]),
    )


def margin_loss():
    from torchkge.utils import MarginLoss

    return MarginLoss(0.5), (torch.randn(4, requires_grad=True), torch.randn(4))


def conv_kb():
    from torchkge.models import ConvKBModel

    return ConvKBModel(4, 2, 5, 2), (
        torch.tensor([0, 1]),
        torch.tensor([1, 2]),
        torch.tensor([0, 1]),
        torch.tensor([3, 4]),
    )
