"""Spiking networks."""

import torch

SOURCE = "pip:snntorch==1.0.0"
IMPORTS = "snntorch"


class _Net(torch.nn.Module):
    def __init__(self, neuron):
        super().__init__()
        self.layer, self.neuron = torch.nn.Linear(4, 4), neuron

    def forward(self, x):
        return self.neuron(self.layer(x))


def leaky():
    import snntorch

    return _Net(snntorch.Leaky(beta=0.9, init_hidden=True, learn_beta=True)), (torch.randn(2, 4),)


def synaptic():
    import snntorch

    return _Net(snntorch.Synaptic(alpha=0.8, beta=0.9, init_hidden=True)), (torch.randn(2, 4),)


def rate_loss():
    from snntorch.functional import mse_count_loss

    return mse_count_loss(0.8, 0.2, population_code=True, num_classes=2), (
        torch.rand(5, 2, 4, requires_grad=True),
        torch.tensor([0, 1]),
    )


def spiking_lstm():
    import snntorch

    return snntorch.SLSTM(4, 8), (torch.randn(2, 4),)
