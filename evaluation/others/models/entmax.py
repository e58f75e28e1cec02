"""Sparse softmax and losses."""

import torch

SOURCE = "pip:entmax==1.3"
IMPORTS = "entmax"


def entmax15_loss():
    from entmax import Entmax15Loss

    return Entmax15Loss(), (torch.randn(4, 6, requires_grad=True), torch.randint(0, 6, (4,)))


def sparsemax_loss():
    from entmax import SparsemaxLoss

    return SparsemaxLoss(), (torch.randn(4, 6, requires_grad=True), torch.randint(0, 6, (4,)))


def bisect_loss():
    from entmax import EntmaxBisectLoss

    return EntmaxBisectLoss(), (torch.randn(4, 6, requires_grad=True), torch.randint(0, 6, (4,)))
