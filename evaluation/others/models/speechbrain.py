"""Speech."""

import torch

SOURCE = "pip:speechbrain==1.1.2"
IMPORTS = "speechbrain"


def ecapa():
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    return ECAPA_TDNN(
        8, lin_neurons=4, channels=[16, 16, 16, 16, 32], res2net_scale=2, attention_channels=4, se_channels=4
    ), (torch.randn(2, 12, 8), torch.tensor([1.0, 0.5]))


def input_normalization():
    from speechbrain.processing.features import InputNormalization

    return InputNormalization(norm_type="sentence"), (torch.randn(2, 12, 8), torch.tensor([1.0, 0.5]))


def transformer_asr():
    from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR

    return TransformerASR(
        10, 8, d_model=16, nhead=2, num_encoder_layers=2, num_decoder_layers=1, d_ffn=16, attention_type="regularMHA"
    ), (torch.randn(2, 12, 8), torch.randint(1, 10, (2, 5)), torch.tensor([1.0, 0.5]))


def gumbel_quantizer():
    from speechbrain.lobes.models.wav2vec import W2VTargetQuantiser

    return W2VTargetQuantiser(
        in_dim=16,
        out_dim=8,
        quantiser=__import__("speechbrain.nnet.quantisers", fromlist=["x"]).GumbelVectorQuantizer,
        num_vars=4,
    ), (torch.randn(2, 5, 16),)


def xvector():
    from speechbrain.lobes.models.Xvector import Xvector

    return Xvector(
        in_channels=8, tdnn_channels=[8, 8], tdnn_kernel_sizes=[3, 1], tdnn_dilations=[1, 1], lin_neurons=4
    ), (torch.randn(2, 12, 8), torch.tensor([1.0, 0.5]))


def spectrogram_drop():
    from speechbrain.augment.freq_domain import SpectrogramDrop

    return SpectrogramDrop(drop_length_low=1, drop_length_high=3), (torch.randn(2, 12, 8),)


def crdnn():
    from speechbrain.lobes.models.CRDNN import CRDNN

    return CRDNN(input_shape=[None, None, 8], cnn_channels=(4, 4), rnn_neurons=8, rnn_layers=1, dnn_neurons=8), (
        torch.randn(2, 12, 8),
    )
