"""Tensor networks."""

import torch

SOURCE = "pip:tntorch==1.1.2"
IMPORTS = "tntorch"


class _Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def multiply():
    import tntorch

    matrix = tntorch.TTMatrix(torch.randn(8, 27), [2, 2], [2, 2, 2], [3, 3, 3])
    return _Calls(lambda x: tntorch.tt_multiply(matrix, x)), (torch.randn(4, 8),)


def train():
    import tntorch

    return _Calls(lambda x: tntorch.Tensor(x, ranks_tt=2).torch()), (torch.randn(4, 5, 6),), {"train": False}


def norm():
    import tntorch

    def norm(x):
        return tntorch.norm(tntorch.Tensor(x))

    return _Calls(norm), (torch.randn(4, 5, 6),), {"train": False}


def dot():
    import tntorch

    def dot(x, y):
        return tntorch.dot(tntorch.Tensor(x), tntorch.Tensor(y))

    return _Calls(dot), (torch.randn(4, 5, 6), torch.randn(4, 5, 6)), {"train": False}
