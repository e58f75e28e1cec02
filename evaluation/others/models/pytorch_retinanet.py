"""RetinaNet."""

import torch

SOURCE = "github:yhenon/pytorch-retinanet@0348a9d57b279e3b5b235461b472d37da5feec3d"
IMPORTS = "retinanet"


def training():
    from retinanet.model import resnet18

    return resnet18(num_classes=3), ((torch.rand(1, 3, 64, 64), torch.tensor([[[8.0, 8.0, 40.0, 40.0, 1.0]]])),)


def detection():
    from retinanet.model import resnet18

    return resnet18(num_classes=3), (torch.rand(1, 3, 64, 64),), {"train": False}


def focal_loss():
    from retinanet.losses import FocalLoss

    anchors = torch.tensor([[[0.0, 0.0, 16.0, 16.0], [8.0, 8.0, 40.0, 40.0], [20.0, 20.0, 60.0, 60.0]]])
    return FocalLoss(), (
        torch.rand(1, 3, 3, requires_grad=True),
        torch.randn(1, 3, 4, requires_grad=True),
        anchors,
        torch.tensor([[[8.0, 8.0, 40.0, 40.0, 1.0], [-1.0, -1.0, -1.0, -1.0, -1.0]]]),
    )
