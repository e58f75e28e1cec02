"""Spectrograms as layers."""

import torch

SOURCE = "pip:nnaudio==0.3.4"
IMPORTS = "nnAudio"


def _wave():
    return (torch.randn(2, 2048),)


def stft():
    from nnAudio.features import STFT

    return STFT(n_fft=64, hop_length=32, verbose=False), _wave(), {"train": False}


def stft_trainable():
    from nnAudio.features import STFT

    made = STFT(n_fft=64, hop_length=32, output_format="Magnitude", trainable=True, verbose=False)
    return made, _wave()


def inverse():
    from nnAudio.features import iSTFT

    return iSTFT(n_fft=64, hop_length=16, verbose=False), (torch.randn(2, 64, 20, 2),), {"train": False}


def mel():
    from nnAudio.features import MelSpectrogram

    return MelSpectrogram(sr=8000, n_fft=64, n_mels=8, hop_length=32, verbose=False), _wave(), {"train": False}


def cepstrum():
    from nnAudio.features import MFCC

    made = MFCC(sr=8000, n_mfcc=4, n_fft=64, n_mels=8, hop_length=32, verbose=False)
    return made, _wave(), {"train": False}


def constant_q():
    from nnAudio.features import CQT1992v2

    return CQT1992v2(sr=8000, hop_length=64, fmin=220, n_bins=12, verbose=False), _wave(), {"train": False}


def constant_q_octaves():
    from nnAudio.features import CQT2010v2

    return (
        CQT2010v2(sr=8000, hop_length=64, fmin=220, n_bins=24, verbose=False),
        (torch.randn(2, 8192),),
        {"train": False},
    )


def variable_q():
    from nnAudio.features import VQT

    return (
        VQT(sr=8000, hop_length=64, fmin=220, n_bins=24, gamma=5, verbose=False),
        (torch.randn(2, 8192),),
        {"train": False},
    )
