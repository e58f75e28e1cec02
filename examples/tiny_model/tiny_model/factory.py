"""Models with example inputs, for `graphmend migrate --model`."""

import torch

from tiny_model.model import Tagger


def tagger():
    """The tagger and one batch without a padding mask."""
    return Tagger().eval(), (torch.arange(12).reshape(2, 6),)


def tagger_half():
    """The tagger in half precision, and one batch with a padding mask."""
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    return Tagger().eval().half(), (torch.arange(12).reshape(2, 6), padding)
