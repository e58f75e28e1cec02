"""Speech recognition."""

import torch

SOURCE = "pip:openai-whisper==20250625"
IMPORTS = "whisper"
STUBS = "tiktoken numba more_itertools"


def _model():
    from whisper.model import ModelDimensions, Whisper

    return Whisper(ModelDimensions(8, 10, 16, 2, 2, 50, 12, 16, 2, 2))


def transcription():
    return _model(), (torch.randn(1, 8, 20), torch.randint(0, 50, (1, 6))), {"train": False}


def decoder_with_cache():
    decoder = _model().decoder

    class Steps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.decoder = decoder

        def forward(self, tokens, features):
            return self.decoder(tokens, features, kv_cache={})

    return Steps(), (torch.randint(0, 50, (1, 6)), torch.randn(1, 10, 16)), {"train": False}


def log_mel():
    from whisper import audio

    class Spectrogram(torch.nn.Module):
        def forward(self, samples):
            return audio.log_mel_spectrogram(samples)

    return Spectrogram(), (torch.randn(4000),), {"train": False}


def pad_or_trim():
    from whisper import audio

    class Pad(torch.nn.Module):
        def forward(self, samples):
            return audio.pad_or_trim(samples, 5000)

    return Pad(), (torch.randn(4000),), {"train": False}


def greedy():
    from whisper.decoding import GreedyDecoder

    class Step(torch.nn.Module):
        def forward(self, tokens, logits, scores):
            return GreedyDecoder(0.0, 49).update(tokens, logits, scores)

    return Step(), (torch.randint(0, 49, (2, 4)), torch.randn(2, 50), torch.zeros(2)), {"train": False}


def median_filter():
    from whisper.timing import median_filter as filtered

    class Median(torch.nn.Module):
        def forward(self, x):
            return filtered(x, 7)

    return Median(), (torch.randn(2, 3, 20),), {"train": False}
