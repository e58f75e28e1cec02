"""Attention by the method of Nystroem."""

import torch

SOURCE = "pip:nystrom-attention==0.0.14"
IMPORTS = "nystrom_attention"


def former():
    from nystrom_attention import Nystromformer

    return Nystromformer(dim=16, dim_head=8, heads=2, depth=1, num_landmarks=4, pinv_iterations=2), (
        torch.randn(2, 10, 16),
    )


def masked():
    from nystrom_attention import NystromAttention

    mask = torch.ones(2, 10, dtype=torch.bool)
    mask[1, 7:] = False
    return NystromAttention(dim=16, dim_head=8, heads=2, num_landmarks=4), (torch.randn(2, 10, 16), mask)
