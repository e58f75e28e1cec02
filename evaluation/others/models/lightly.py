"""Self-supervised learning."""

import torch

SOURCE = "pip:lightly==1.6.0"
IMPORTS = "lightly"


def memory_bank():
    from lightly.models.modules import NNMemoryBankModule

    return NNMemoryBankModule(size=(8, 4)), (torch.randn(2, 4),), {"train": True, "gradients": False}


def ntxent():
    from lightly.loss import NTXentLoss

    return NTXentLoss(memory_bank_size=(8, 4)), (torch.randn(2, 4, requires_grad=True), torch.randn(2, 4))


def dino_loss():
    from lightly.loss import DINOLoss

    return DINOLoss(8), (
        [torch.randn(2, 8)],
        [torch.randn(2, 8, requires_grad=True), torch.randn(2, 8, requires_grad=True)],
        0,
    )


def swav():
    from lightly.loss import SwaVLoss

    return SwaVLoss(), ([torch.randn(4, 8, requires_grad=True)] * 2, [torch.randn(4, 8, requires_grad=True)])


def vicregl():
    from lightly.loss import DCLLoss

    return DCLLoss(), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8))


def tico():
    from lightly.loss import TiCoLoss

    return TiCoLoss(), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8))


def pmsn():
    from lightly.loss import MSNLoss

    return MSNLoss(), (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8), torch.randn(6, 8))


def sparse_spark():
    from lightly.loss import SymNegCosineSimilarityLoss

    return SymNegCosineSimilarityLoss(), (
        (torch.randn(4, 8, requires_grad=True), torch.randn(4, 8)),
        (torch.randn(4, 8), torch.randn(4, 8)),
    )
