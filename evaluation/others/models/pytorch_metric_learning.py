"""Losses and miners on pairs and triplets."""

import torch

SOURCE = "pip:pytorch-metric-learning==2.9.0"
IMPORTS = "pytorch_metric_learning"


def triplet_margin():
    from pytorch_metric_learning.losses import TripletMarginLoss

    return TripletMarginLoss(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def contrastive():
    from pytorch_metric_learning.losses import ContrastiveLoss

    return ContrastiveLoss(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def multi_similarity():
    from pytorch_metric_learning.losses import MultiSimilarityLoss

    return MultiSimilarityLoss(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def ntxent():
    from pytorch_metric_learning.losses import NTXentLoss

    return NTXentLoss(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def arcface():
    from pytorch_metric_learning.losses import ArcFaceLoss

    return ArcFaceLoss(3, 8), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def proxy_anchor():
    from pytorch_metric_learning.losses import ProxyAnchorLoss

    return ProxyAnchorLoss(3, 8), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def soft_triple():
    from pytorch_metric_learning.losses import SoftTripleLoss

    return SoftTripleLoss(3, 8), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def circle():
    from pytorch_metric_learning.losses import CircleLoss

    return CircleLoss(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def batch_hard_miner():
    from pytorch_metric_learning.miners import BatchHardMiner

    return BatchHardMiner(), (torch.randn(6, 8, requires_grad=True), torch.tensor([0, 0, 1, 1, 2, 2]))


def cross_batch_memory():
    from pytorch_metric_learning.losses import ContrastiveLoss, CrossBatchMemory

    return CrossBatchMemory(ContrastiveLoss(), 8, 16), (
        torch.randn(6, 8, requires_grad=True),
        torch.tensor([0, 0, 1, 1, 2, 2]),
    )
