"""Attention to objects."""

import torch

SOURCE = "pip:slot_attention==1.5.2"
IMPORTS = "slot_attention"
STUBS = "vector_quantize_pytorch"


def slots():
    from slot_attention import SlotAttention

    return SlotAttention(3, 8), (torch.randn(2, 10, 8),)


def heads():
    from slot_attention import MultiHeadSlotAttention

    return MultiHeadSlotAttention(3, 8, heads=2, dim_head=4), (torch.randn(2, 10, 8),)


def adaptive():
    from slot_attention import AdaptiveSlotWrapper, MultiHeadSlotAttention

    return AdaptiveSlotWrapper(MultiHeadSlotAttention(3, 8, heads=2, dim_head=4)), (torch.randn(2, 10, 8),)


def experimental():
    from slot_attention import SlotAttentionExperimental

    return SlotAttentionExperimental(3, 8), (torch.randn(2, 10, 8),)
