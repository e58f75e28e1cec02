"""Attention to points."""

import torch

SOURCE = "pip:invariant-point-attention==0.2.2"
IMPORTS = "invariant_point_attention"


class _Points(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, single, pairs, rotations, translations, mask):
        return self.model(single, pairs, rotations=rotations, translations=translations, mask=mask)


class _Block(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, single, rotations, translations, mask):
        return self.model(single, rotations=rotations, translations=translations, mask=mask)


def attention():
    from invariant_point_attention import InvariantPointAttention

    rotations = torch.eye(3).expand(1, 6, 3, 3).contiguous()
    return _Points(InvariantPointAttention(dim=16, heads=2, pairwise_repr_dim=8)), (
        torch.randn(1, 6, 16), torch.randn(1, 6, 6, 8), rotations, torch.randn(1, 6, 3), torch.ones(1, 6).bool(),
    )  # fmt: skip


def block():
    from invariant_point_attention import IPABlock

    rotations = torch.eye(3).expand(1, 6, 3, 3).contiguous()
    return _Block(IPABlock(dim=16, heads=2, require_pairwise_repr=False)), (
        torch.randn(1, 6, 16), rotations, torch.randn(1, 6, 3), torch.ones(1, 6).bool(),
    )  # fmt: skip
