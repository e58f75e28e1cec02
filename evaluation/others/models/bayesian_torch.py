"""Bayesian layers, by flipout and reparameterisation."""

import torch

SOURCE = "pip:bayesian-torch==0.5.0"
IMPORTS = "bayesian_torch"


def linear():
    from bayesian_torch.layers import LinearReparameterization

    return LinearReparameterization(4, 5), (torch.randn(3, 4),)


def flipout_linear():
    from bayesian_torch.layers import LinearFlipout

    return LinearFlipout(4, 5), (torch.randn(3, 4),)


def convolution():
    from bayesian_torch.layers import Conv2dReparameterization

    return Conv2dReparameterization(3, 4, 3), (torch.randn(2, 3, 8, 8),)


def flipout_convolution():
    from bayesian_torch.layers import Conv2dFlipout

    return Conv2dFlipout(3, 4, 3), (torch.randn(2, 3, 8, 8),)


def lstm():
    from bayesian_torch.layers import LSTMReparameterization

    return LSTMReparameterization(4, 5), (torch.randn(2, 6, 4),)


def flipout_lstm():
    from bayesian_torch.layers import LSTMFlipout

    return LSTMFlipout(4, 5), (torch.randn(2, 6, 4),)


def calibration():
    from bayesian_torch.utils.avuc_loss import AvULoss

    return AvULoss(), (torch.randn(6, 3, requires_grad=True), torch.randint(0, 3, (6,)), torch.tensor(0.5))


def from_deterministic():
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn

    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    dnn_to_bnn(net, {
        "prior_mu": 0.0, "prior_sigma": 1.0, "posterior_mu_init": 0.0, "posterior_rho_init": -3.0,
        "type": "Reparameterization", "moped_enable": False, "moped_delta": 0.5,
    })  # fmt: skip
    return net, (torch.randn(3, 4),)
