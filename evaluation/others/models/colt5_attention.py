"""Conditional routing to light and heavy branches."""

import torch

SOURCE = "pip:colt5-attention==0.11.2"
IMPORTS = "colt5_attention"


def feedforward():
    from colt5_attention import ConditionalRoutedFeedForward

    return ConditionalRoutedFeedForward(8, num_heavy_tokens=4), (torch.randn(2, 16, 8),)


def attention():
    from colt5_attention import ConditionalRoutedAttention

    return ConditionalRoutedAttention(
        dim=8,
        light_dim_head=4,
        light_heads=2,
        light_window_size=4,
        heavy_dim_head=4,
        heavy_heads=2,
        num_heavy_tokens_q=4,
        num_heavy_tokens_kv=4,
    ), (torch.randn(2, 16, 8),)


def mixture_of_attention():
    from colt5_attention.transformer_block import MixtureOfAttention

    return MixtureOfAttention(
        dim=8, num_routed_queries=4, num_routed_key_values=4, num_experts=2, dim_head=4, heads=2
    ), (torch.randn(2, 16, 8),)
