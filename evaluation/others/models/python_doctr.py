"""Texts in images."""

import torch

SOURCE = "pip:python-doctr==1.1.0"
IMPORTS = "doctr"


def _words():
    return ["ab", "abc"]


def crnn():
    from doctr.models.recognition import crnn_mobilenet_v3_small

    return _Targets(crnn_mobilenet_v3_small(pretrained=False, vocab="abc", pretrained_backbone=False), _words()), (
        torch.rand(2, 3, 32, 64),
    )


class _Targets(torch.nn.Module):
    def __init__(self, net, target):
        super().__init__()
        self.net, self.target = net, target

    def forward(self, images):
        return self.net(images, self.target)["loss"]


def db_net():
    import numpy as np
    from doctr.models.detection import db_mobilenet_v3_large

    boxes = [{"words": np.array([[0.1, 0.1, 0.6, 0.5]], dtype=np.float32)}]
    return (
        _Targets(db_mobilenet_v3_large(pretrained=False, pretrained_backbone=False), boxes),
        (torch.rand(1, 3, 64, 64),),
        {"train": False},
    )
