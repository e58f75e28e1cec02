"""Reformer: attention by hashing."""

import torch

SOURCE = "pip:reformer-pytorch==1.4.4"
IMPORTS = "reformer_pytorch"


def reformer():
    from reformer_pytorch import ReformerLM

    return ReformerLM(
        num_tokens=20, dim=16, depth=1, max_seq_len=16, heads=2, bucket_size=4, n_hashes=2, causal=True
    ), (torch.randint(0, 20, (1, 16)),)


def lsh_attention():
    from reformer_pytorch import LSHSelfAttention

    return LSHSelfAttention(dim=16, heads=2, bucket_size=4, n_hashes=2), (torch.randn(1, 16, 16),)
