"""Hierarchical attention."""

import torch

SOURCE = "pip:h-transformer-1d==0.1.9"
IMPORTS = "h_transformer_1d"


def transformer():
    from h_transformer_1d import HTransformer1D

    return HTransformer1D(num_tokens=11, dim=16, depth=2, max_seq_len=32, heads=2, dim_head=8, block_size=8), (
        torch.randint(0, 11, (2, 30)),
        torch.ones(2, 30, dtype=torch.bool),
    )


def causal_shifted():
    from h_transformer_1d import HTransformer1D

    return HTransformer1D(
        num_tokens=11,
        dim=16,
        depth=2,
        max_seq_len=32,
        heads=2,
        dim_head=8,
        block_size=8,
        causal=True,
        shift_tokens=True,
    ), (torch.randint(0, 11, (2, 30)),)


def reversible():
    from h_transformer_1d import HTransformer1D

    return HTransformer1D(
        num_tokens=11, dim=16, depth=2, max_seq_len=32, heads=2, dim_head=8, block_size=8, reversible=True
    ), (torch.randint(0, 11, (2, 32)),)


def language_model_loss():
    from h_transformer_1d import HTransformer1D
    from h_transformer_1d.autoregressive_wrapper import AutoregressiveWrapper

    net = HTransformer1D(num_tokens=11, dim=16, depth=1, max_seq_len=32, heads=2, dim_head=8, block_size=8, causal=True)
    return AutoregressiveWrapper(net), (torch.randint(0, 11, (2, 33)),)
