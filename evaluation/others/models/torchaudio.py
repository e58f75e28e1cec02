"""Audio models."""

import torch

SOURCE = "pip:torchaudio==2.11.0"
IMPORTS = "torchaudio"
REMOVED = "torchaudio/lib"


def conformer():
    from torchaudio.models import Conformer

    return Conformer(8, 2, 16, 1, 3), (torch.randn(2, 6, 8), torch.tensor([6, 4]))


def wav2vec2():
    from torchaudio.models import wav2vec2_model

    return wav2vec2_model(
        "layer_norm", [(8, 10, 5), (8, 3, 2)], False, 16, 0.0, 3, 2, 1, 2, 0.0, 0.0, 16, 0.0, False, 0.2, None
    ), (torch.randn(2, 400), torch.tensor([400, 300]))


def tacotron2():
    from torchaudio.models import Tacotron2

    model = Tacotron2(
        n_symbol=10,
        n_mels=4,
        symbol_embedding_dim=8,
        encoder_embedding_dim=8,
        encoder_n_convolution=1,
        decoder_rnn_dim=8,
        attention_rnn_dim=8,
        attention_hidden_dim=8,
        prenet_dim=8,
        postnet_n_convolution=2,
        postnet_embedding_dim=8,
    )
    return model, (torch.randint(0, 10, (2, 5)), torch.tensor([5, 4]), torch.randn(2, 4, 6), torch.tensor([6, 5]))


def spec_augment():
    from torchaudio.transforms import SpecAugment

    return SpecAugment(2, 4, 2, 4), (torch.randn(2, 8, 10),)


def mel_spectrogram():
    from torchaudio.transforms import MelSpectrogram

    return MelSpectrogram(8000, n_fft=64, n_mels=8), (torch.randn(2, 400),)


def emformer():
    from torchaudio.models import Emformer

    return Emformer(8, 2, 16, 1, 4, right_context_length=1), (torch.randn(2, 9, 8), torch.tensor([8, 8]))


def time_stretch():
    from torchaudio.transforms import PitchShift

    return PitchShift(8000, 2, n_fft=64), (torch.randn(2, 400),)
