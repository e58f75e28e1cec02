"""Sparse attention that chooses blocks."""

import torch

SOURCE = "pip:native-sparse-attention-pytorch==0.2.3"
IMPORTS = "native_sparse_attention_pytorch"


def _attention(**more):
    from native_sparse_attention_pytorch import SparseAttention

    return SparseAttention(
        dim=32, dim_head=8, heads=2, sliding_window_size=4, compress_block_size=4, compress_block_sliding_stride=2,
        selection_block_size=4, num_selected_blocks=2, **more
    )  # fmt: skip


def attention():
    return _attention(), (torch.randn(2, 17, 32),)


def causal():
    return _attention(causal=True), (torch.randn(2, 17, 32),)


def differentiable():
    return _attention(causal=True, use_diff_topk=True), (torch.randn(2, 16, 32),)


def one_token():
    attention = _attention(causal=True)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, last):
            _, cache = self.attention(x, return_cache=True)
            return self.attention(last, cache=cache)

    return Step(), (torch.randn(1, 12, 32), torch.randn(1, 1, 32)), {"train": False}


def transformer():
    from native_sparse_attention_pytorch.transformer import Transformer

    model = Transformer(
        20, 16, 1, dim_head=8, heads=2, use_sparse_attn=True,
        sparse_attn_kwargs={
            "sliding_window_size": 4, "compress_block_size": 4, "compress_block_sliding_stride": 2,
            "selection_block_size": 4, "num_selected_blocks": 2,
        },
    )  # fmt: skip
    return model, (torch.randint(0, 20, (1, 12)), True)
