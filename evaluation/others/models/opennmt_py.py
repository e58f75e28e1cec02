"""Translation."""

import torch

SOURCE = "pip:OpenNMT-py==3.5.1"
IMPORTS = "onmt"
STUBS = "spacy fasttext"


def global_attention():
    from onmt.modules import GlobalAttention

    return GlobalAttention(16, attn_type="mlp", coverage=True), (
        torch.randn(2, 3, 16),
        torch.randn(2, 5, 16),
        torch.tensor([5, 3]),
        torch.rand(2, 5),
    )


def copy_loss():
    from onmt.modules.copy_generator import CopyGeneratorLoss

    return CopyGeneratorLoss(10, False), (
        torch.rand(6, 14, requires_grad=True),
        torch.randint(0, 4, (6,)),
        torch.randint(0, 10, (6,)),
    )


def sparsemax():
    from onmt.modules.sparse_losses import SparsemaxLoss

    return SparsemaxLoss(ignore_index=0), (torch.randn(6, 8, requires_grad=True), torch.randint(0, 8, (6,)))


def average_attention():
    from onmt.modules import AverageAttention

    return AverageAttention(16), (torch.randn(2, 5, 16),)


def matrix_tree():
    from onmt.modules.structured_attention import MatrixTree

    return MatrixTree(), (torch.rand(2, 4, 4),)
