"""Losses between sampled measures."""

import torch

SOURCE = "pip:geomloss==0.3.1"
IMPORTS = "geomloss"


def _points():
    return torch.rand(8, 3, requires_grad=True), torch.rand(10, 3)


def _loss(*names, **options):
    from geomloss import SamplesLoss

    return SamplesLoss(*names, backend="tensorized", **options)


def sinkhorn():
    return _loss("sinkhorn", p=2, blur=0.1), _points()


def sinkhorn_weighted():
    weights = torch.rand(8).softmax(0), torch.rand(10).softmax(0)
    x, y = _points()
    return _loss("sinkhorn", p=1, blur=0.1, reach=0.5), (weights[0], x, weights[1], y)


def sinkhorn_batch():
    return _loss("sinkhorn", p=2, blur=0.1, debias=False), (
        torch.rand(2, 8, 3, requires_grad=True),
        torch.rand(2, 6, 3),
    )


def energy():
    return _loss("energy"), _points()


def gaussian():
    return _loss("gaussian", blur=0.3), _points()
