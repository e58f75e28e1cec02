"""Audio codec."""

import torch

SOURCE = "pip:descript-audio-codec==1.0.0"
IMPORTS = "dac"
STUBS = "tensorboard"


def residual_vector_quantize():
    from dac.nn.quantize import ResidualVectorQuantize

    return ResidualVectorQuantize(8, 3, 8, 4, 0.5), (torch.randn(2, 8, 12, requires_grad=True),)


def codec():
    from dac.model import DAC

    return DAC(
        encoder_dim=4,
        encoder_rates=[2, 2],
        decoder_dim=8,
        decoder_rates=[2, 2],
        n_codebooks=2,
        codebook_size=8,
        sample_rate=8000,
    ), (torch.randn(1, 1, 100),)
