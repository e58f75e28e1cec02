"""Speech enhancement."""

import torch

SOURCE = "pip:denoiser==0.1.5"
IMPORTS = "denoiser"
STUBS = "torchaudio pesq sounddevice"


def waveforms():
    from denoiser.demucs import Demucs

    return Demucs(hidden=4, depth=2, resample=2), (torch.randn(1, 1, 400),)


def shift():
    from denoiser.augment import Shift

    return Shift(20), (torch.randn(2, 3, 1, 400),)


def echo():
    from denoiser.augment import RevEcho

    return RevEcho(1.0, first_delay=(0.001, 0.003), rt60=(0.01, 0.02)), (torch.randn(2, 3, 1, 4000),)


def remix():
    from denoiser.augment import Remix

    return Remix(), (torch.randn(2, 3, 1, 400),)


def filters():
    from denoiser.dsp import LowPassFilters

    return LowPassFilters([0.1, 0.2], width=8), (torch.randn(400),)
