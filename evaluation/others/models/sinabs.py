"""Spiking layers."""

import torch

SOURCE = "pip:sinabs==3.1.3"
IMPORTS = "sinabs"
STUBS = "nir nirtorch samna"


def _spikes():
    return (torch.rand(2, 5, 4, requires_grad=True),)


def leaky():
    from sinabs.layers import LIF

    return LIF(tau_mem=10.0), _spikes()


def leaky_synapses():
    from sinabs.layers import LIF

    return LIF(tau_mem=10.0, tau_syn=5.0, min_v_mem=-1.0, train_alphas=True), _spikes()


def integrate():
    from sinabs.layers import IAF

    return IAF(min_v_mem=-1.0), _spikes()


def adaptive():
    from sinabs.layers import ALIF

    return ALIF(tau_mem=10.0, tau_adapt=10.0), _spikes()


def decay():
    from sinabs.layers import ExpLeak

    return ExpLeak(tau_mem=10.0), _spikes()


def recurrent():
    from sinabs.layers import LIFRecurrent

    return LIFRecurrent(tau_mem=10.0, rec_connect=torch.nn.Linear(4, 4)), _spikes()


def squeezed():
    from sinabs.layers import IAFSqueeze

    return IAFSqueeze(batch_size=2), (torch.rand(10, 4, requires_grad=True),)


def quantize():
    from sinabs.layers import QuantizeLayer

    return QuantizeLayer(), _spikes()


def max_pooling():
    from sinabs.layers import SpikingMaxPooling2dLayer

    return SpikingMaxPooling2dLayer(2), (torch.randint(0, 2, (3, 2, 4, 4)).float(),), {"train": False}
