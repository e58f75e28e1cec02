"""Perceivers."""

import torch

SOURCE = "pip:perceiver-pytorch==0.11.0"
IMPORTS = "perceiver_pytorch"


def perceiver():
    from perceiver_pytorch import Perceiver

    return Perceiver(
        num_freq_bands=2,
        depth=1,
        max_freq=4.0,
        num_latents=4,
        latent_dim=8,
        latent_heads=2,
        num_classes=3,
        latent_dim_head=4,
        cross_dim_head=4,
    ), (torch.rand(1, 6, 6, 3),)


def language_model():
    from perceiver_pytorch import PerceiverIO

    return PerceiverIO(
        dim=8, queries_dim=8, depth=1, num_latents=4, latent_dim=8, latent_heads=2, seq_dropout_prob=0.3
    ), (torch.randn(2, 8, 8), torch.ones(2, 8).bool(), torch.randn(3, 8))
