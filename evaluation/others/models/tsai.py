"""Time series."""

import torch

SOURCE = "pip:tsai==1.0.1"
IMPORTS = "tsai"
STUBS = "fasthtml fasthtml.common"


def patch_tst():
    from tsai.models.PatchTST import PatchTST

    return PatchTST(2, 2, 16, 4, n_layers=1, d_model=8, n_heads=2, d_ff=8, patch_len=4, stride=2), (
        torch.randn(2, 2, 16),
    )


def tst():
    from tsai.models.TST import TST

    return TST(2, 2, 16, n_layers=1, d_model=8, n_heads=2, d_ff=8), (torch.randn(2, 2, 16),)


def focal_loss():
    from tsai.losses import FocalLoss

    return FocalLoss(), (torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 0]))
