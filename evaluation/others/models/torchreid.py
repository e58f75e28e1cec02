"""Persons seen again."""

import torch

SOURCE = "pip:torchreid==0.2.5"
IMPORTS = "torchreid.reid"


def omni_scale():
    from torchreid.reid.models.osnet import osnet_x0_25

    return osnet_x0_25(4, pretrained=False), (torch.randn(2, 3, 64, 32),)


def omni_scale_domain():
    from torchreid.reid.models.osnet_ain import osnet_ain_x0_25

    return osnet_ain_x0_25(4, pretrained=False), (torch.randn(2, 3, 64, 32),)


def factorization():
    from torchreid.reid.models.mlfn import MLFN

    return MLFN(4, channels=[8, 16, 16, 32, 32], groups=4, embed_dim=16), (torch.randn(2, 3, 64, 32),)


def parts():
    from torchreid.reid.models.pcb import pcb_p4

    return pcb_p4(4, pretrained=False), (torch.randn(2, 3, 64, 32),)


def shuffle():
    from torchreid.reid.models.shufflenet import ShuffleNet

    return ShuffleNet(4), (torch.randn(2, 3, 64, 64),)


def triplets():
    from torchreid.reid.losses.hard_mine_triplet_loss import TripletLoss

    return TripletLoss(), (torch.randn(6, 8), torch.tensor([0, 0, 1, 1, 2, 2]))


def smoothed():
    from torchreid.reid.losses.cross_entropy_loss import CrossEntropyLoss

    return CrossEntropyLoss(4, use_gpu=False), (torch.randn(6, 4), torch.tensor([0, 0, 1, 1, 2, 3]))
