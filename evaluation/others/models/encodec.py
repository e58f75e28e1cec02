"""Audio codec."""

import torch

SOURCE = "pip:encodec==0.1.1"
IMPORTS = "encodec"


def model():
    from encodec.model import EncodecModel
    from encodec.modules import SEANetDecoder, SEANetEncoder
    from encodec.quantization import ResidualVectorQuantizer

    encoder = SEANetEncoder(channels=1, dimension=8, n_filters=4, ratios=[2, 2], lstm=1)
    decoder = SEANetDecoder(channels=1, dimension=8, n_filters=4, ratios=[2, 2], lstm=1)
    return (
        EncodecModel(encoder, decoder, ResidualVectorQuantizer(8, n_q=2, bins=8), [1.5], 8000, 1),
        (torch.randn(1, 1, 200),),
        {"train": False},
    )


def residual_vector_quantizer():
    from encodec.quantization import ResidualVectorQuantizer

    return ResidualVectorQuantizer(8, n_q=2, bins=8), (torch.randn(2, 8, 12, requires_grad=True), 50)
