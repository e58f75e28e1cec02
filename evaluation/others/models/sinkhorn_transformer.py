"""Attention by sorted buckets."""

import torch

SOURCE = "pip:sinkhorn-transformer==0.11.4"
IMPORTS = "sinkhorn_transformer"


def language_model():
    from sinkhorn_transformer import SinkhornTransformerLM

    return SinkhornTransformerLM(num_tokens=20, dim=16, heads=2, depth=1, max_seq_len=16, bucket_size=4, causal=True), (
        torch.randint(0, 20, (1, 16)),
    )


def attention():
    from sinkhorn_transformer.sinkhorn_transformer import SinkhornSelfAttention

    return SinkhornSelfAttention(16, 4, 16, heads=2, sinkhorn_iter=2), (torch.randn(1, 16, 16),)
