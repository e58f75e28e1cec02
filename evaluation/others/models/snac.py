"""A neural audio codec with several time scales."""

import torch

SOURCE = "pip:snac==1.2.1"
IMPORTS = "snac"


def _codec(**more):
    from snac import SNAC

    return SNAC(
        sampling_rate=8000, encoder_dim=8, encoder_rates=[2, 2], latent_dim=32, decoder_dim=32, decoder_rates=[2, 2],
        codebook_size=16, codebook_dim=4, vq_strides=[2, 1], attn_window_size=None, **more
    )  # fmt: skip


def codec():
    return _codec(), (torch.randn(1, 1, 256),), {"train": False}


def codec_training():
    return _codec(noise=False), (torch.randn(1, 1, 256),)
