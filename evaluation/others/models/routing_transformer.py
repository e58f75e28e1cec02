"""Attention by clusters."""

import torch

SOURCE = "pip:routing-transformer==1.6.1"
IMPORTS = "routing_transformer"


def language_model():
    from routing_transformer import RoutingTransformerLM

    return RoutingTransformerLM(
        num_tokens=20,
        dim=16,
        heads=2,
        depth=1,
        max_seq_len=16,
        window_size=4,
        causal=True,
        dim_head=8,
        n_local_attn_heads=1,
    ), (torch.randint(0, 20, (1, 16)),)
