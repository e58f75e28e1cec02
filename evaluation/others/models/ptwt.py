"""Wavelet transforms."""

import torch

SOURCE = "pip:ptwt==1.0.1"
IMPORTS = "ptwt"


class _Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def decomposition():
    import ptwt

    return _Call(lambda x: ptwt.wavedec(x, "db2", level=2)), (torch.randn(2, 32),), {"train": False}


def round_trip():
    import ptwt

    return _Call(lambda x: ptwt.waverec(ptwt.wavedec(x, "haar", level=2), "haar")), (torch.randn(2, 32),)


def images():
    import ptwt

    return _Call(lambda x: ptwt.wavedec2(x, "db2", level=2)), (torch.randn(2, 16, 16),), {"train": False}


def stationary():
    import ptwt

    return _Call(lambda x: ptwt.swt(x, "haar", level=2)), (torch.randn(2, 32),), {"train": False}


def continuous():
    import ptwt

    return _Call(lambda x: ptwt.cwt(x, [1.0, 2.0], "cgau2")[0]), (torch.randn(2, 32),), {"train": False}


def packets():
    import ptwt

    return (
        _Call(lambda x: ptwt.WaveletPacket(x, "haar", maxlevel=2)["aa"]),
        (torch.randn(2, 32),),
        {"train": False},
    )


def matrices():
    import ptwt

    return _Call(ptwt.MatrixWavedec("db2", level=2)), (torch.randn(2, 32),), {"train": False}


def product_filter():
    from ptwt.wavelets_learnable import ProductFilter

    made = ProductFilter(*(torch.rand(4) for _ in range(4)))
    return _Call(lambda x: made.wavelet_loss() + x), (torch.randn(1),), {"train": False}
