"""Spiking networks."""

import torch

SOURCE = "pip:spikingjelly==2.0.0"
IMPORTS = "spikingjelly"


def lif():
    from spikingjelly.activation_based import neuron

    return neuron.LIFNode(step_mode="m"), (torch.rand(4, 2, 8),)


def parametric():
    from spikingjelly.activation_based import layer, neuron

    return torch.nn.Sequential(layer.Linear(8, 8), neuron.ParametricLIFNode()), (torch.rand(2, 8),)


def dropout():
    from spikingjelly.activation_based import layer

    return layer.Dropout(0.5), (torch.rand(2, 8),)
