"""Speech recognition and synthesis."""

import torch

SOURCE = "pip:espnet==202511"
IMPORTS = "espnet2"
STUBS = (
    "librosa kaldiio humanfriendly torch_complex.tensor torch_complex.functional pyworld espnet_tts_frontend "
    "ctc_segmentation sentencepiece editdistance"
)


def _speech():
    return torch.randn(2, 40, 16), torch.tensor([40, 31])


def conformer():
    from espnet2.asr.encoder.conformer_encoder import ConformerEncoder

    return ConformerEncoder(16, 16, 2, 32, 1, rel_pos_type="latest"), _speech(), {"train": False}


def branchformer():
    from espnet2.asr.encoder.e_branchformer_encoder import EBranchformerEncoder

    made = EBranchformerEncoder(16, 16, 2, cgmlp_linear_units=32, cgmlp_conv_kernel=3, num_blocks=1)
    return made, _speech(), {"train": False}


def blocks():
    from espnet2.asr.encoder.contextual_block_transformer_encoder import ContextualBlockTransformerEncoder

    made = ContextualBlockTransformerEncoder(16, 16, 2, 32, 1, block_size=4, hop_size=2, look_ahead=1)
    return made, _speech(), {"train": False}


def recurrent():
    from espnet2.asr.encoder.rnn_encoder import RNNEncoder

    return RNNEncoder(16, num_layers=1, hidden_size=8, output_size=8), _speech(), {"train": False}


def augmentation():
    from espnet2.asr.specaug.specaug import SpecAug

    return SpecAug(freq_mask_width_range=(0, 4), time_mask_width_range=(0, 4)), _speech()


def time_warp():
    from espnet2.layers.time_warp import TimeWarp

    return TimeWarp(window=5), _speech()


def normalization():
    from espnet2.layers.utterance_mvn import UtteranceMVN

    return UtteranceMVN(norm_vars=True), _speech()


def spectrogram():
    from espnet2.layers.stft import Stft

    return Stft(64, hop_length=16), (torch.randn(2, 400), torch.tensor([400, 300])), {"train": False}


def label_smoothing():
    from espnet.nets.pytorch_backend.transformer.label_smoothing_loss import LabelSmoothingLoss

    target = torch.randint(0, 8, (2, 5))
    target[1, 3:] = -1
    return LabelSmoothingLoss(8, -1, 0.1), (torch.randn(2, 5, 8, requires_grad=True), target)


def length_regulator():
    from espnet.nets.pytorch_backend.fastspeech.length_regulator import LengthRegulator

    return LengthRegulator(), (torch.randn(2, 4, 8), torch.tensor([[1, 2, 3, 1], [2, 1, 1, 0]]))


def stochastic_durations():
    from espnet2.gan_tts.vits.duration_predictor import StochasticDurationPredictor

    return StochasticDurationPredictor(8, 3, flows=2, dds_conv_layers=1), (
        torch.randn(2, 8, 5),
        torch.ones(2, 1, 5),
        torch.randint(1, 4, (2, 1, 5)).float(),
    )


def posterior():
    from espnet2.gan_tts.vits.posterior_encoder import PosteriorEncoder

    return PosteriorEncoder(8, 4, 8, 3, 2), (torch.randn(2, 8, 12), torch.tensor([12, 9]))
