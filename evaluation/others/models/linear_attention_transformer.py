"""Linear attention."""

import torch

SOURCE = "pip:linear-attention-transformer==0.19.1"
IMPORTS = "linear_attention_transformer"


def language_model():
    from linear_attention_transformer import LinearAttentionTransformerLM

    return LinearAttentionTransformerLM(
        num_tokens=20,
        dim=16,
        heads=2,
        depth=1,
        max_seq_len=16,
        causal=True,
        blindspot_size=4,
        n_local_attn_heads=1,
        local_attn_window_size=4,
    ), (torch.randint(0, 20, (1, 16)),)
