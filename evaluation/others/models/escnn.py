"""Equivariant networks."""

import torch

SOURCE = "pip:escnn==1.0.11"
IMPORTS = "escnn"


def r2_conv():
    from escnn import gspaces, nn

    space = gspaces.rot2dOnR2(4)
    kind_in, kind_out = nn.FieldType(space, [space.trivial_repr]), nn.FieldType(space, [space.regular_repr])
    return _Equivariant(
        kind_in, nn.SequentialModule(nn.R2Conv(kind_in, kind_out, 3), nn.InnerBatchNorm(kind_out), nn.ReLU(kind_out))
    ), (torch.randn(1, 1, 8, 8),)


class _Equivariant(torch.nn.Module):
    def __init__(self, kind, net):
        super().__init__()
        self.kind, self.net = kind, net

    def forward(self, x):
        return self.net(self.kind(x)).tensor
