"""Augmentation of audio."""

import torch

SOURCE = "pip:torch-audiomentations==0.12.0"
IMPORTS = "torch_audiomentations"


def _wave():
    return (torch.randn(2, 1, 2000),)


def gain():
    from torch_audiomentations import Gain

    return Gain(p=0.5, sample_rate=8000, output_type="tensor"), _wave()


def polarity():
    from torch_audiomentations import PolarityInversion

    return PolarityInversion(p=0.5, sample_rate=8000, output_type="tensor"), _wave()


def low_pass():
    from torch_audiomentations import LowPassFilter

    return LowPassFilter(max_cutoff_freq=3000.0, p=1.0, sample_rate=8000, output_type="tensor"), _wave()


def noise():
    from torch_audiomentations import AddColoredNoise

    return AddColoredNoise(p=1.0, sample_rate=8000, output_type="tensor"), _wave()


def peak():
    from torch_audiomentations import PeakNormalization

    return PeakNormalization(p=1.0, sample_rate=8000, output_type="tensor"), _wave()


def shift():
    from torch_audiomentations import Shift

    return Shift(p=1.0, sample_rate=8000, output_type="tensor"), _wave()


def splice():
    from torch_audiomentations import SpliceOut

    return SpliceOut(p=1.0, num_time_intervals=2, max_width=100, sample_rate=8000, output_type="tensor"), _wave()


def composition():
    from torch_audiomentations import Compose, Gain, TimeInversion

    return Compose([Gain(output_type="tensor"), TimeInversion(output_type="tensor")], output_type="tensor"), (
        *_wave(),
        8000,
    )
