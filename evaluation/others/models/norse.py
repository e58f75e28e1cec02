"""Spiking neurons."""

import torch

SOURCE = "pip:norse==1.1.0"
IMPORTS = "norse"


def lif_recurrent():
    from norse.torch import LIFRecurrent

    return LIFRecurrent(4, 3), (torch.randn(5, 2, 4),)


def lsnn():
    from norse.torch import LSNNRecurrent

    return LSNNRecurrent(4, 3), (torch.randn(5, 2, 4),)


def population():
    from norse.torch import PopulationEncoder

    return PopulationEncoder(5), (torch.rand(2, 3),)


def poisson():
    from norse.torch import PoissonEncoder

    return PoissonEncoder(5), (torch.rand(2, 3),)


def latency():
    from norse.torch import SpikeLatencyEncoder

    return SpikeLatencyEncoder(), ((torch.rand(5, 2, 3) > 0.5).float(),)


def constant_current():
    from norse.torch import ConstantCurrentLIFEncoder

    return ConstantCurrentLIFEncoder(5), (torch.rand(2, 3),)


def sequential():
    from norse.torch import LI, LIF, SequentialState

    return SequentialState(torch.nn.Linear(4, 3), LIF(), torch.nn.Linear(3, 2), LI()), (torch.randn(5, 2, 4),)


def lifted():
    from norse.torch import LIFCell, Lift

    return Lift(LIFCell()), (torch.randn(5, 2, 4),)


def izhikevich():
    from norse.torch import IzhikevichRecurrent
    from norse.torch.functional.izhikevich import tonic_spiking

    return IzhikevichRecurrent(4, 4, tonic_spiking), (torch.randn(5, 2, 4),)


def coba():
    from norse.torch import CobaLIFCell

    return CobaLIFCell(4, 3), (torch.randn(2, 4),)


def box():
    from norse.torch import LIFBoxCell

    return LIFBoxCell(), (torch.randn(2, 4),)


def adex():
    from norse.torch import LIFAdExRecurrent

    return LIFAdExRecurrent(4, 3), (torch.randn(5, 2, 4),)


def spikes_to_times():
    from norse.torch import SpikesToTimesDecoder

    return SpikesToTimesDecoder(2), ((torch.rand(5, 2, 3) > 0.3).float().requires_grad_(),)
