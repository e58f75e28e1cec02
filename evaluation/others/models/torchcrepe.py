"""Pitch of speech."""

import torch

SOURCE = "pip:torchcrepe==0.0.24"
IMPORTS = "torchcrepe"
STUBS = "librosa resampy torchaudio tqdm"


class _Call(torch.nn.Module):
    def __init__(self, function, *arguments):
        super().__init__()
        self.function, self.arguments = function, arguments

    def forward(self, *tensors):
        return self.function(*tensors, *self.arguments)


def tiny():
    from torchcrepe.model import Crepe

    return Crepe("tiny"), (torch.randn(3, 1024),), {"train": False}


def median():
    from torchcrepe import filter

    return _Call(filter.median, 3), (torch.randn(1, 20),), {"train": False}


def mean():
    from torchcrepe import filter

    return _Call(filter.mean, 3), (torch.randn(1, 20),), {"train": False}


def argmax_decoder():
    from torchcrepe import decode

    return _Call(decode.argmax), (torch.randn(1, 360, 7),), {"train": False}


def weighted_decoder():
    from torchcrepe import decode

    return _Call(decode.weighted_argmax), (torch.randn(1, 360, 7),), {"train": False}


def periodicity():
    from torchcrepe.core import postprocess

    return _Call(postprocess, 50.0, 550.0), (torch.randn(1, 360, 7),), {"train": False}


def threshold():
    from torchcrepe.threshold import At

    return _Call(At(0.2)), (torch.rand(1, 20), torch.rand(1, 20)), {"train": False}
