"""Intelligibility of speech, as a loss."""

import torch

SOURCE = "pip:torch-stoi==0.2.3"
IMPORTS = "torch_stoi"


def _waves():
    return torch.randn(2, 6000, requires_grad=True), torch.randn(2, 6000)


def intelligibility():
    from torch_stoi import NegSTOILoss

    return NegSTOILoss(sample_rate=10000), _waves()


def without_silence():
    from torch_stoi import NegSTOILoss

    return NegSTOILoss(sample_rate=10000, use_vad=False), _waves()


def extended():
    from torch_stoi import NegSTOILoss

    return NegSTOILoss(sample_rate=10000, extended=True), _waves()
