"""A foundation model for time series."""

import torch

SOURCE = "pip:momentfm==0.1.4"
IMPORTS = "momentfm"


def revin():
    from momentfm.models.layers.revin import RevIN

    return RevIN(2, affine=True), (torch.randn(3, 2, 16), "norm", torch.ones(3, 16)), {"train": False}


def patches():
    from momentfm.models.layers.embed import PatchEmbedding

    made = PatchEmbedding(8, 32, 8, 8, add_positional_embedding=True)
    return made, (torch.randn(2, 1, 4, 8), torch.ones(2, 32)), {"train": False}


def masking():
    from momentfm.utils.masking import Masking

    class Mask(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.masking = Masking(0.3, 8)

        def forward(self, x, observed):
            return self.masking.generate_mask(x, observed)

    return Mask(), (torch.randn(2, 1, 32), torch.ones(2, 32)), {"train": False}
