"""Rotary positions."""

import torch

SOURCE = "pip:rotary-embedding-torch==0.9.1"
IMPORTS = "rotary_embedding_torch"


class _Rotates(torch.nn.Module):
    def __init__(self, method, **options):
        super().__init__()
        from rotary_embedding_torch import RotaryEmbedding

        self.rotary, self.method = RotaryEmbedding(**options), method

    def forward(self, *inputs):
        return getattr(self.rotary, self.method)(*inputs)


def queries():
    return _Rotates("rotate_queries_or_keys", dim=8), (torch.randn(1, 2, 6, 16),)


def extended():
    return _Rotates("rotate_queries_and_keys", dim=8, use_xpos=True), (
        torch.randn(1, 2, 6, 16),
        torch.randn(1, 2, 6, 16),
    )


def cached_keys():
    return _Rotates("rotate_queries_with_cached_keys", dim=8, interpolate_factor=2.0), (
        torch.randn(1, 2, 2, 16),
        torch.randn(1, 2, 6, 16),
    )


def learned():
    return _Rotates("rotate_queries_or_keys", dim=8, learned_freq=True), (torch.randn(1, 2, 6, 16),)


def axial():
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    class Axial(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rotary = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16)

        def forward(self, queries):
            return apply_rotary_emb(self.rotary.get_axial_freqs(4, 5), queries)

    return Axial(), (torch.randn(1, 4, 5, 16),)
