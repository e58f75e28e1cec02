"""YOLOX."""

import torch

SOURCE = "github:Megvii-BaseDetection/YOLOX@6ddff4824372906469a7fae2dc3206c7aa4bbaee"
IMPORTS = "yolox"
STUBS = "pycocotools pycocotools.coco pycocotools.cocoeval thop"


def training():
    from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead

    model = YOLOX(YOLOPAFPN(0.33, 0.125), YOLOXHead(3, 0.125))
    return model, (torch.rand(1, 3, 64, 64), torch.tensor([[[1.0, 30.0, 30.0, 20.0, 20.0], [0.0, 0.0, 0.0, 0.0, 0.0]]]))


def detection():
    from yolox.models import YOLOPAFPN, YOLOX, YOLOXHead

    return YOLOX(YOLOPAFPN(0.33, 0.125), YOLOXHead(3, 0.125)), (torch.rand(1, 3, 64, 64),), {"train": False}
