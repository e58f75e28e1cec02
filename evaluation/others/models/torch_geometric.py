"""Graph neural networks."""

import torch

SOURCE = "pip:torch_geometric==2.8.1"
IMPORTS = "torch_geometric"

_EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])


def gcn():
    from torch_geometric.nn import GCN

    return GCN(8, 8, 2, 3), (torch.randn(5, 8), _EDGES)


def gat():
    from torch_geometric.nn import GAT

    return GAT(8, 8, 2, 3, v2=True), (torch.randn(5, 8), _EDGES)


def topk_pooling():
    from torch_geometric.nn import TopKPooling

    return TopKPooling(8), (torch.randn(5, 8), _EDGES, None, torch.tensor([0, 0, 0, 1, 1]))


def sag_pooling():
    from torch_geometric.nn import SAGPooling

    return SAGPooling(8), (torch.randn(5, 8), _EDGES, None, torch.tensor([0, 0, 0, 1, 1]))


def asa_pooling():
    from torch_geometric.nn import ASAPooling

    return ASAPooling(8), (torch.randn(5, 8), _EDGES, None, torch.tensor([0, 0, 0, 1, 1]))


def rgcn():
    from torch_geometric.nn import RGCNConv

    return RGCNConv(8, 8, 3), (torch.randn(5, 8), _EDGES, torch.tensor([0, 1, 2, 0, 1, 2]))


def gps():
    from torch_geometric.nn import GCNConv, GPSConv

    return GPSConv(8, GCNConv(8, 8), heads=2), (torch.randn(5, 8), _EDGES, torch.tensor([0, 0, 0, 1, 1]))


def attentive_fp():
    from torch_geometric.nn import AttentiveFP

    return AttentiveFP(8, 8, 2, 4, 2, 2), (torch.randn(5, 8), _EDGES, torch.randn(6, 4), torch.tensor([0, 0, 0, 1, 1]))


def graph_unet():
    from torch_geometric.nn import GraphUNet

    return GraphUNet(8, 8, 2, 2), (torch.randn(5, 8), _EDGES)


def set2set():
    from torch_geometric.nn.aggr import Set2Set

    return Set2Set(8, 2), (torch.randn(5, 8), torch.tensor([0, 0, 0, 1, 1]))


def sort_aggregation():
    from torch_geometric.nn.aggr import SortAggregation

    return SortAggregation(3), (torch.randn(5, 8), torch.tensor([0, 0, 0, 1, 1]))


def tgn_memory():
    from torch_geometric.nn import DMoNPooling

    return DMoNPooling(8, 2), (torch.randn(2, 5, 8), torch.rand(2, 5, 5))
