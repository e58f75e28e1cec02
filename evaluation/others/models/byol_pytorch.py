"""Learning without labels."""

import torch

SOURCE = "pip:byol-pytorch==0.9.1"
IMPORTS = "byol_pytorch"


def _network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 8),
        torch.nn.Linear(8, 4),
    )


def momentum():
    from byol_pytorch import BYOL

    model = BYOL(
        _network(), image_size=16, projection_size=8, projection_hidden_size=16,
        augment_fn=torch.nn.Identity(), augment_fn2=torch.nn.Identity(),
    )  # fmt: skip
    return model, (torch.randn(4, 3, 16, 16),)


def siamese():
    from byol_pytorch import BYOL

    model = BYOL(
        _network(), image_size=16, projection_size=8, projection_hidden_size=16, use_momentum=False,
        augment_fn=torch.nn.Identity(), augment_fn2=torch.nn.Identity(), use_simplicial_embeddings=False,
    )  # fmt: skip
    return model, (torch.randn(4, 3, 16, 16),)
