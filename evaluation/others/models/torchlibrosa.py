"""Spectrograms as convolutions."""

import torch

SOURCE = "pip:torchlibrosa==0.1.0"
IMPORTS = "torchlibrosa"


def stft():
    from torchlibrosa.stft import STFT

    return STFT(n_fft=64, hop_length=16), (torch.randn(2, 400),)


def istft():
    from torchlibrosa.stft import ISTFT

    return ISTFT(n_fft=64, hop_length=16), (torch.randn(2, 1, 26, 33), torch.randn(2, 1, 26, 33), 400)


def spectrogram():
    from torchlibrosa.stft import Spectrogram

    return Spectrogram(n_fft=64, hop_length=16), (torch.randn(2, 400),)


def logmel():
    from torchlibrosa.stft import LogmelFilterBank

    return LogmelFilterBank(sr=8000, n_fft=64, n_mels=8), (torch.rand(2, 1, 26, 33),)


def logmel_without_floor():
    from torchlibrosa.stft import LogmelFilterBank

    return LogmelFilterBank(sr=8000, n_fft=64, n_mels=8, top_db=None), (torch.rand(2, 1, 26, 33),)


def augmentation():
    from torchlibrosa.augmentation import SpecAugmentation

    return SpecAugmentation(8, 2, 4, 2), (torch.rand(2, 1, 26, 33),)
