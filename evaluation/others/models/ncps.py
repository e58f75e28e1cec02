"""Liquid networks."""

import torch

SOURCE = "pip:ncps==1.0.1"
IMPORTS = "ncps"


def ltc():
    from ncps.torch import LTC
    from ncps.wirings import AutoNCP

    return LTC(4, AutoNCP(8, 2)), (torch.randn(2, 5, 4),)


def cfc():
    from ncps.torch import CfC

    return CfC(4, 8), (torch.randn(2, 5, 4))
