"""Cosine transforms."""

import torch

SOURCE = "pip:torch-dct==0.1.6"
IMPORTS = "torch_dct"


class _Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def dct():
    import torch_dct

    return _Calls(torch_dct.dct), (torch.randn(2, 8),)


def idct():
    import torch_dct

    return _Calls(torch_dct.idct), (torch.randn(2, 8),)


def dct_3d():
    import torch_dct

    return _Calls(torch_dct.dct_3d), (torch.randn(2, 4, 8, 8),)


def layer():
    from torch_dct import LinearDCT

    return LinearDCT(8, "dct"), (torch.randn(2, 8),)
