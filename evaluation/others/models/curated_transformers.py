"""Transformers of curated parts."""

import torch

SOURCE = "pip:curated-transformers==2.0.1"
IMPORTS = "curated_transformers"


class _Masked(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, mask):
        from curated_transformers.layers import AttentionMask

        return self.net(tokens, AttentionMask(mask)).all_outputs[-1]


def bert():
    from curated_transformers.models import BERTConfig, BERTEncoder

    config = BERTConfig(
        embedding_width=16,
        hidden_width=16,
        intermediate_width=32,
        n_attention_heads=2,
        n_hidden_layers=1,
        n_pieces=32,
        n_positions=16,
    )
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1, 6:] = False
    return _Masked(BERTEncoder(config)), (torch.randint(0, 32, (2, 8)), mask), {"train": False}


def gpt_neox():
    from curated_transformers.models import GPTNeoXConfig, GPTNeoXDecoder

    config = GPTNeoXConfig(
        hidden_width=16, intermediate_width=32, n_attention_heads=2, n_hidden_layers=1, n_pieces=32, n_positions=16
    )
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1, :2] = False
    return _Masked(GPTNeoXDecoder(config)), (torch.randint(0, 32, (2, 8)), mask), {"train": False}


def falcon():
    from curated_transformers.models import FalconConfig, FalconDecoder

    config = FalconConfig(hidden_width=16, n_query_heads=2, n_key_value_heads=1, n_hidden_layers=1, n_pieces=32)
    return (
        _Masked(FalconDecoder(config)),
        (torch.randint(0, 32, (2, 8)), torch.ones(2, 8, dtype=torch.bool)),
        {"train": False},
    )
