"""Quality of images."""

import torch

SOURCE = "pip:piq==0.8.0"
IMPORTS = "piq"


def ssim():
    from piq import SSIMLoss

    return SSIMLoss(kernel_size=5), (torch.rand(1, 3, 24, 24, requires_grad=True), torch.rand(1, 3, 24, 24))


def vif():
    from piq import VIFLoss

    return VIFLoss(), (torch.rand(1, 3, 48, 48, requires_grad=True), torch.rand(1, 3, 48, 48))


def gmsd():
    from piq import GMSDLoss

    return GMSDLoss(), (torch.rand(1, 3, 24, 24, requires_grad=True), torch.rand(1, 3, 24, 24))


def total_variation():
    from piq import TVLoss

    return TVLoss(), (torch.rand(1, 3, 24, 24, requires_grad=True),)


def haarpsi():
    from piq import HaarPSILoss

    return HaarPSILoss(), (torch.rand(1, 3, 24, 24, requires_grad=True), torch.rand(1, 3, 24, 24))


def brisque():
    from piq import MDSILoss

    return MDSILoss(), (torch.rand(1, 3, 24, 24, requires_grad=True), torch.rand(1, 3, 24, 24))
