"""Invertible networks."""

import torch

SOURCE = "pip:FrEIA==0.2"
IMPORTS = "FrEIA"


def _network(size):
    return torch.nn.Sequential(torch.nn.Linear(size[0], 8), torch.nn.ReLU(), torch.nn.Linear(8, size[1]))


def sequence():
    from FrEIA.framework import SequenceINN
    from FrEIA.modules import AllInOneBlock

    inn = SequenceINN(4)
    inn.append(AllInOneBlock, subnet_constructor=lambda i, o: _network((i, o)), permute_soft=True)
    return inn, (torch.randn(3, 4),)


def spline():
    from FrEIA.framework import SequenceINN
    from FrEIA.modules import RationalQuadraticSpline

    inn = SequenceINN(4)
    inn.append(RationalQuadraticSpline, subnet_constructor=lambda i, o: _network((i, o)), bins=4)
    return inn, (torch.randn(3, 4),)


def elementwise():
    from FrEIA.framework import SequenceINN
    from FrEIA.modules import ElementwiseRationalQuadraticSpline

    inn = SequenceINN(4)
    inn.append(ElementwiseRationalQuadraticSpline, subnet_constructor=lambda i, o: _network((i, o)), bins=4)
    return inn, (torch.randn(3, 4),)
