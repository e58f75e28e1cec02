"""Faces."""

import torch

SOURCE = "pip:facenet-pytorch==2.6.0"
IMPORTS = "facenet_pytorch"


def mtcnn():
    from facenet_pytorch.models.utils.detect_face import generateBoundingBox

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.score = torch.nn.Conv2d(3, 5, 3)

        def forward(self, x):
            out = self.score(x)
            return generateBoundingBox(out[:, :4], out[:, 4], 0.5, 0.0)

    return Model(), (torch.rand(1, 3, 16, 16),), {"train": False}
