"""Transformers with a memory of neighbours."""

import torch

SOURCE = "pip:memorizing-transformers-pytorch==0.4.1"
IMPORTS = "memorizing_transformers_pytorch"


def attention():
    from memorizing_transformers_pytorch.memorizing_transformers_pytorch import Attention

    return Attention(dim=16, heads=2, dim_head=8, xl_max_memories=4), (torch.randn(2, 8, 16),)


class _Memorizing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        from memorizing_transformers_pytorch import MemorizingTransformer

        self.net = MemorizingTransformer(
            num_tokens=32,
            dim=16,
            depth=2,
            dim_head=8,
            heads=2,
            memorizing_layers=2,
            max_knn_memories=16,
            num_retrieved_memories=2,
        )
        self.memories = self.net.create_knn_memories(batch_size=2)

    def forward(self, tokens):
        return self.net(tokens, knn_memories=self.memories)


def transformer():
    return _Memorizing(), (torch.randint(0, 32, (2, 8)),), {"train": False}
