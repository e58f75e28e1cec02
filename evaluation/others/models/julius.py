"""Filters, bands and resampling of audio."""

import torch

SOURCE = "pip:julius==0.2.8"
IMPORTS = "julius"


def resample():
    import julius

    return julius.ResampleFrac(4, 5), (torch.randn(2, 200),)


def low_pass():
    import julius

    return julius.LowPassFilters([0.1, 0.2]), (torch.randn(2, 200),)


def band_pass():
    import julius

    return julius.BandPassFilter(0.1, 0.3), (torch.randn(2, 400),)


def bands():
    import julius

    return julius.SplitBands(8000, n_bands=4), (torch.randn(2, 400),)


def convolution():
    import julius

    return julius.FFTConv1d(2, 3, 64), (torch.randn(2, 2, 400),)
