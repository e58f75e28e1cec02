"""Attention with projected keys."""

import torch

SOURCE = "pip:linformer==0.2.3"
IMPORTS = "linformer"


def language_model():
    from linformer import LinformerLM

    return LinformerLM(num_tokens=20, dim=16, seq_len=12, depth=1, k=4, heads=2), (torch.randint(0, 20, (2, 12)),)


def reversible():
    from linformer import Linformer

    return Linformer(dim=16, seq_len=12, depth=1, k=4, heads=2, reversible=True, dropout=0.1), (torch.randn(2, 12, 16),)
