"""Filterbanks of audio that can be trained."""

import torch

SOURCE = "pip:asteroid-filterbanks==0.4.0"
IMPORTS = "asteroid_filterbanks"


def _wave():
    return (torch.randn(2, 1, 400),)


def free():
    from asteroid_filterbanks import Encoder, FreeFB

    return Encoder(FreeFB(8, 16)), _wave()


def fourier():
    from asteroid_filterbanks import STFTFB, Encoder

    return Encoder(STFTFB(16, 16)), _wave()


def sinc():
    from asteroid_filterbanks import Encoder, ParamSincFB

    return Encoder(ParamSincFB(8, 17)), _wave()


def analytic():
    from asteroid_filterbanks import AnalyticFreeFB, Encoder

    return Encoder(AnalyticFreeFB(8, 16)), _wave()


def decoder():
    from asteroid_filterbanks import Decoder, FreeFB

    return Decoder(FreeFB(8, 16)), (torch.randn(2, 8, 20), 160)


def mel():
    from asteroid_filterbanks import Encoder
    from asteroid_filterbanks.melgram_fb import MelGramFB

    return Encoder(MelGramFB(32, 32, n_mels=6)), _wave(), {"train": False}


def normalization():
    from asteroid_filterbanks.pcen import PCEN

    return PCEN(), (torch.rand(2, 1, 8, 6),)
