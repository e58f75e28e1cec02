"""Vision models; the operators without a build are stood in for."""

import torch

SOURCE = "pip:torchvision==0.29.2"
IMPORTS = "torchvision"


def faster_rcnn():
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    return (
        fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=3, min_size=64, max_size=64
        ),
        ([torch.rand(3, 64, 64)],),
        {"train": False},
    )


def retinanet_training():
    from torchvision.models.detection.retinanet import RetinaNetHead

    head = RetinaNetHead(8, 1, 3)
    return _HeadLoss(head), (torch.randn(1, 8, 2, 2, requires_grad=True), torch.tensor([0, 1, -1, -2]))


class _HeadLoss(torch.nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = head

    def forward(self, features, matched):
        boxes = torch.tensor(
            [[0.0, 0.0, 16.0, 16.0], [8.0, 8.0, 40.0, 40.0], [2.0, 2.0, 30.0, 60.0], [1.0, 1.0, 6.0, 6.0]]
        )
        targets = [{"labels": torch.tensor([1, 2]), "boxes": boxes[:2]}]
        return self.head.compute_loss(targets, self.head([features]), [boxes], [matched])


def fcos():
    from torchvision.models import mobilenet_v3_small
    from torchvision.models.detection import FCOS
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    backbone = mobilenet_v3_small().features
    backbone.out_channels = 576
    return FCOS(backbone, 3, min_size=64, max_size=64, anchor_generator=AnchorGenerator(((16,),), ((1.0,),))), (
        [torch.rand(3, 64, 64)],
        [{"boxes": torch.tensor([[4.0, 4.0, 30.0, 40.0]]), "labels": torch.tensor([1])}],
    )


def ssd_lite():
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large

    return (
        ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3),
        ([torch.rand(3, 64, 64)],),
        {"train": False},
    )


def random_erasing():
    from torchvision.transforms.v2 import RandomErasing

    return RandomErasing(p=1.0), (torch.rand(3, 16, 16),)


def stochastic_depth():
    from torchvision.models import GoogLeNet

    return GoogLeNet(num_classes=3, aux_logits=False, init_weights=False), (torch.rand(2, 3, 64, 64),)
