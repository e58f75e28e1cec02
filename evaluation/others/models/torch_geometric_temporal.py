"""Graphs over time."""

import sys
import types

import torch

SOURCE = "pip:torch_geometric_temporal==0.56.2"
IMPORTS = "torch_geometric_temporal"

_EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 0], [1, 0, 2, 1, 4, 3, 3]])
_WEIGHT = torch.rand(7)


def _ready():
    """Its models do not need the binary companion, whose class it imports."""
    import torch_geometric.typing

    if "torch_sparse" not in sys.modules:
        sys.modules["torch_sparse"] = stand_in = types.ModuleType("torch_sparse")
        stand_in.SparseTensor = torch_geometric.typing.SparseTensor


def dcrnn():
    _ready()
    from torch_geometric_temporal import DCRNN

    return DCRNN(4, 3, 2), (torch.randn(5, 4), _EDGES, _WEIGHT)


def gconv_gru():
    _ready()
    from torch_geometric_temporal import GConvGRU

    return GConvGRU(4, 3, 2), (torch.randn(5, 4), _EDGES, _WEIGHT)


def gc_lstm():
    _ready()
    from torch_geometric_temporal import GCLSTM

    return GCLSTM(4, 3, 2), (torch.randn(5, 4), _EDGES, _WEIGHT)


def evolve_h():
    _ready()
    from torch_geometric_temporal import EvolveGCNH

    return EvolveGCNH(5, 4), (torch.randn(5, 4), _EDGES, _WEIGHT)


def evolve_o():
    _ready()
    from torch_geometric_temporal import EvolveGCNO

    return EvolveGCNO(4), (torch.randn(5, 4), _EDGES, _WEIGHT)


def agcrn():
    _ready()
    from torch_geometric_temporal import AGCRN

    return AGCRN(5, 4, 3, 2, 2), (torch.randn(1, 5, 4), torch.randn(5, 2))


def a3tgcn():
    _ready()
    from torch_geometric_temporal import A3TGCN

    return A3TGCN(4, 3, 2), (torch.randn(5, 4, 2), _EDGES, _WEIGHT)


def mpnn_lstm():
    _ready()
    from torch_geometric_temporal import MPNNLSTM

    return MPNNLSTM(4, 3, 5, 1, 0.0), (torch.randn(5, 4), _EDGES, _WEIGHT)


def astgcn():
    _ready()
    from torch_geometric_temporal import ASTGCN

    return ASTGCN(1, 4, 2, 4, 4, 1, 3, 6, 5), (torch.randn(1, 5, 4, 6), _EDGES)


def mstgcn():
    _ready()
    from torch_geometric_temporal import MSTGCN

    return MSTGCN(1, 4, 2, 4, 4, 1, 3, 6), (torch.randn(1, 5, 4, 6), _EDGES)


def stconv():
    _ready()
    from torch_geometric_temporal import STConv

    return STConv(5, 4, 3, 2, 2, 2), (torch.randn(1, 6, 5, 4), _EDGES, _WEIGHT)


def dnntsp():
    _ready()
    from torch_geometric_temporal import DNNTSP

    return DNNTSP(5, 4, 2), (torch.randn(5, 2, 4)[:, 0], _EDGES, _WEIGHT)


def gman():
    _ready()
    from torch_geometric_temporal import GMAN

    model = GMAN(1, 2, 2, 4, 0.1, 24, True, False)
    return model, (torch.randn(2, 4, 5), torch.randn(5, 4), torch.randint(0, 7, (2, 8, 2)))


def mtgnn():
    _ready()
    from torch_geometric_temporal import MTGNN

    model = MTGNN(
        gcn_true=True, build_adj=True, gcn_depth=1, num_nodes=5, kernel_set=[2, 3], kernel_size=3, dropout=0.1,
        subgraph_size=2, node_dim=4, dilation_exponential=1, conv_channels=4, residual_channels=4, skip_channels=4,
        end_channels=4, seq_length=6, in_dim=2, out_dim=3, layers=1, propalpha=0.1, tanhalpha=3.0,
        layer_norm_affline=True,
    )  # fmt: skip
    return model, (torch.randn(1, 2, 5, 6),)


def lrgcn():
    _ready()
    from torch_geometric_temporal import LRGCN

    return LRGCN(4, 3, 2, 2), (torch.randn(5, 4), _EDGES, torch.tensor([0, 1, 0, 1, 0, 1, 0]))
