"""Losses and layers of molecular property prediction."""

import torch

SOURCE = "pip:chemprop==2.3.1"
IMPORTS = "chemprop.nn"
STUBS = "descriptastorus.descriptors cuik_molmaker"

_MASK = torch.tensor([[True], [False], [True], [True]])


def _metric(name, preds, targets, **options):
    from chemprop.nn import metrics

    mask = _MASK if targets.ndim == 2 and targets.shape[1] == 1 else torch.ones_like(targets, dtype=torch.bool)
    bounds = torch.zeros_like(mask)
    return getattr(metrics, name)(**options), (preds, targets, mask, torch.ones(4, 1), bounds, bounds)


def mse():
    return _metric("MSE", torch.randn(4, 1), torch.randn(4, 1))


def bounded():
    return _metric("BoundedMSE", torch.randn(4, 1), torch.randn(4, 1))


def mve():
    return _metric("MVELoss", torch.rand(4, 1, 2) + 0.1, torch.randn(4, 1))


def evidential():
    return _metric("EvidentialLoss", torch.rand(4, 1, 4) + 1.1, torch.randn(4, 1))


def mcc():
    return _metric("BinaryMCCLoss", torch.rand(4, 1), torch.randint(0, 2, (4, 1)).float())


def multiclass_mcc():
    return _metric("MulticlassMCCLoss", torch.rand(4, 1, 3), torch.randint(0, 3, (4, 1)).float())


def dirichlet():
    return _metric("DirichletLoss", torch.rand(4, 1, 3) + 1, torch.randint(0, 3, (4, 1)).float())


def sid():
    return _metric("SID", torch.rand(4, 6) + 0.1, torch.rand(4, 6) + 0.1, threshold=0.2)


def wasserstein():
    return _metric("Wasserstein", torch.rand(4, 6) + 0.1, torch.rand(4, 6) + 0.1, threshold=0.2)


def attentive():
    from chemprop.nn.agg import AttentiveAggregation

    return AttentiveAggregation(output_size=4), (torch.randn(6, 4), torch.tensor([0, 0, 0, 1, 1, 1]))


def norm_aggregation():
    from chemprop.nn.agg import NormAggregation

    return NormAggregation(), (torch.randn(6, 4), torch.tensor([0, 0, 0, 1, 1, 1]))


def message_passing():
    from chemprop.nn import BondMessagePassing

    class _Graph:
        pass

    graph = _Graph()
    graph.V, graph.E = torch.randn(3, 4), torch.randn(4, 2)
    graph.edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph.rev_edge_index = torch.tensor([1, 0, 3, 2])
    graph.batch = torch.tensor([0, 0, 0])
    return BondMessagePassing(d_v=4, d_e=2, d_h=8), (graph,)
