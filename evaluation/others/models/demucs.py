"""Source separation."""

import torch

SOURCE = "pip:demucs==4.1.0"
IMPORTS = "demucs"
STUBS = "lameenc"


def htdemucs():
    from demucs.demucs import Demucs

    return Demucs(["a", "b"], audio_channels=1, channels=4, depth=2, lstm_layers=1, rescale=0), (
        torch.randn(1, 1, 2000),
    )


def hybrid():
    from demucs.hdemucs import HDemucs

    return HDemucs(["a", "b"], audio_channels=1, channels=4, depth=2, nfft=64, rescale=0, dconv_mode=0), (
        torch.randn(1, 1, 1000),
    )
