"""Quantized images."""

import torch

SOURCE = "pip:taming-transformers==0.0.1"
IMPORTS = "taming"


def quantizer():
    from taming.modules.vqvae.quantize import VectorQuantizer

    return VectorQuantizer(8, 4, beta=0.25), (torch.randn(2, 4, 4, 4),)


def encoder():
    from taming.modules.diffusionmodules.model import Encoder

    return Encoder(
        ch=32,
        out_ch=3,
        ch_mult=(1, 2),
        num_res_blocks=1,
        attn_resolutions=[8],
        in_channels=3,
        resolution=16,
        z_channels=4,
    ), (torch.randn(1, 3, 16, 16),)


def mingpt():
    from taming.modules.transformer.mingpt import GPT

    return GPT(20, 8, n_layer=1, n_head=2, n_embd=16), (torch.randint(0, 20, (2, 6)),)


def discriminator():
    from taming.modules.discriminator.model import NLayerDiscriminator

    return NLayerDiscriminator(3, 8, 2, use_actnorm=True), (torch.randn(2, 3, 32, 32),)
