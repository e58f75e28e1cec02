"""Speech synthesis."""

import torch

SOURCE = "pip:coqui_tts==0.28.0"
IMPORTS = "TTS.tts.models"

_LENGTHS = torch.tensor([6, 4])
_TEXT = torch.randint(1, 20, (2, 6))
_MELS = torch.randn(2, 20, 80)
_MEL_LENGTHS = torch.tensor([20, 16])


def glow_tts():
    from TTS.tts.configs.glow_tts_config import GlowTTSConfig
    from TTS.tts.models.glow_tts import GlowTTS

    model = GlowTTS(GlowTTSConfig(num_chars=20, hidden_channels_enc=16, hidden_channels_dec=16, hidden_channels_dp=16))
    return model, (_TEXT, _LENGTHS, _MELS, _MEL_LENGTHS)


def fast_pitch():
    from TTS.tts.configs.fast_pitch_config import FastPitchConfig
    from TTS.tts.models.forward_tts import ForwardTTS, ForwardTTSArgs

    config = FastPitchConfig(model_args=ForwardTTSArgs(num_chars=20, hidden_channels=16, out_channels=80))
    durations = torch.tensor([[4, 4, 3, 3, 3, 3], [4, 4, 4, 4, 0, 0]])
    return ForwardTTS(config), (_TEXT, _LENGTHS, _MEL_LENGTHS, _MELS, durations, torch.randn(2, 1, 20))


def align_tts():
    from TTS.tts.configs.align_tts_config import AlignTTSArgs, AlignTTSConfig
    from TTS.tts.models.align_tts import AlignTTS

    config = AlignTTSConfig(model_args=AlignTTSArgs(num_chars=20, hidden_channels=16, hidden_channels_dp=16))
    return AlignTTS(config), (_TEXT, _LENGTHS, _MELS, _MEL_LENGTHS)


def tacotron2():
    from TTS.tts.configs.tacotron2_config import Tacotron2Config
    from TTS.tts.models.tacotron2 import Tacotron2

    return Tacotron2(Tacotron2Config(num_chars=20, r=2)), (_TEXT, _LENGTHS, _MELS, _MEL_LENGTHS)


def stochastic_duration():
    from TTS.tts.layers.vits.stochastic_duration_predictor import StochasticDurationPredictor

    return StochasticDurationPredictor(8, 8, 3, 0.1, 2), (
        torch.randn(2, 8, 6),
        torch.ones(2, 1, 6),
        torch.ones(2, 1, 6),
    )


def vits_text():
    from TTS.tts.layers.vits.networks import TextEncoder

    return TextEncoder(20, 8, 8, 16, 2, 1, 3, 0.1), (_TEXT, _LENGTHS)


def vits_flows():
    from TTS.tts.layers.vits.networks import ResidualCouplingBlocks

    return ResidualCouplingBlocks(8, 8, 3, 1, 2), (torch.randn(2, 8, 6), torch.ones(2, 1, 6))


def masked_l1():
    from TTS.tts.layers.losses import L1LossMasked

    return L1LossMasked(True), (torch.randn(2, 20, 80), _MELS, _MEL_LENGTHS)


def masked_bce():
    from TTS.tts.layers.losses import BCELossMasked

    return BCELossMasked(10.0), (torch.randn(2, 20), torch.rand(2, 20), _MEL_LENGTHS)


def ssim():
    from TTS.tts.layers.losses import SSIMLoss

    return SSIMLoss(), (torch.rand(2, 20, 80), torch.rand(2, 20, 80), _MEL_LENGTHS)


def guided():
    from TTS.tts.layers.losses import GuidedAttentionLoss

    return GuidedAttentionLoss(), (torch.rand(2, 20, 6), _LENGTHS, _MEL_LENGTHS)


def forward_sum():
    from TTS.tts.layers.losses import ForwardSumLoss

    return ForwardSumLoss(), (torch.randn(2, 1, 20, 6), _LENGTHS, _MEL_LENGTHS)


def speaker():
    from TTS.encoder.models.resnet import ResNetSpeakerEncoder

    return ResNetSpeakerEncoder(input_dim=16, num_filters=[4, 4, 8, 8]), (torch.randn(2, 16, 40),)


def lstm_speaker():
    from TTS.encoder.models.lstm import LSTMSpeakerEncoder

    return LSTMSpeakerEncoder(16, 8, 8, 1), (torch.randn(2, 16, 40),)
