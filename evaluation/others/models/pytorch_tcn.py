"""Temporal convolutions."""

import torch

SOURCE = "pip:pytorch-tcn==1.2.3"
IMPORTS = "pytorch_tcn"


def network():
    from pytorch_tcn import TCN

    return TCN(3, [8, 8], kernel_size=3), (torch.randn(2, 3, 16),)


def skips():
    from pytorch_tcn import TCN

    return TCN(3, [8, 8], kernel_size=3, use_skip_connections=True, causal=False, use_norm="batch_norm"), (
        torch.randn(2, 3, 16),
    )


def embedded():
    from pytorch_tcn import TCN

    return TCN(3, [8, 8], embedding_shapes=[(5,)], embedding_mode="concat", use_gate=True), (
        torch.randn(2, 3, 16),
        torch.randn(2, 5),
    )


def transposed():
    from pytorch_tcn import TemporalConvTranspose1d

    return TemporalConvTranspose1d(3, 4, 4, stride=2), (torch.randn(2, 3, 16),)


def padding():
    from pytorch_tcn import TemporalConv1d

    return TemporalConv1d(3, 4, 4, padding_mode="reflect"), (torch.randn(2, 3, 16),)
