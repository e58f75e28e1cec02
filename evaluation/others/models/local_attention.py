"""Attention in windows."""

import torch

SOURCE = "pip:local-attention==1.11.2"
IMPORTS = "local_attention"


def transformer():
    from local_attention import LocalTransformer

    return LocalTransformer(
        num_tokens=20, dim=16, depth=1, max_seq_len=16, causal=True, local_attn_window_size=4, heads=2, dim_head=8
    ), (torch.randint(0, 20, (1, 13)),)


def attention():
    from local_attention import LocalAttention

    return LocalAttention(dim=8, window_size=4, causal=True, autopad=True, shared_qk=True), (
        torch.randn(1, 2, 14, 8),
        torch.randn(1, 2, 14, 8),
        torch.randn(1, 2, 14, 8),
    )
