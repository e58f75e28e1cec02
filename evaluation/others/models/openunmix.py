"""Separation of music into its sources."""

import torch

SOURCE = "pip:openunmix==1.3.0"
IMPORTS = "openunmix"
STUBS = "torchaudio"


def _network():
    from openunmix.model import OpenUnmix

    return OpenUnmix(nb_bins=33, nb_channels=2, hidden_size=16, nb_layers=1)


def spectrograms():
    return _network(), (torch.rand(1, 2, 33, 10),)


def separator():
    from openunmix.model import Separator

    made = Separator({"vocals": _network(), "rest": _network()}, niter=1, n_fft=64, n_hop=16, nb_channels=2)
    return made, (torch.randn(1, 2, 512),), {"train": False}


def wiener():
    from openunmix.filtering import wiener

    class Filter(torch.nn.Module):
        def forward(self, targets, mix):
            return wiener(targets, mix, iterations=1)

    return Filter(), (torch.rand(6, 9, 2, 2), torch.randn(6, 9, 2, 2)), {"train": False}


def transform():
    from openunmix.transforms import TorchSTFT

    return TorchSTFT(n_fft=64, n_hop=16), (torch.randn(1, 2, 512),), {"train": False}
