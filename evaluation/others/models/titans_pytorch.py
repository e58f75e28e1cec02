"""Neural memory."""

import torch

SOURCE = "pip:titans-pytorch==0.5.5"
IMPORTS = "titans_pytorch"


def neural_memory():
    from titans_pytorch import NeuralMemory

    return NeuralMemory(dim=8, chunk_size=4), (torch.randn(1, 8, 8),)


def memory_as_context():
    from titans_pytorch import MemoryAsContextTransformer

    return MemoryAsContextTransformer(
        num_tokens=20,
        dim=8,
        depth=1,
        segment_len=4,
        num_persist_mem_tokens=1,
        num_longterm_mem_tokens=1,
        dim_head=4,
        heads=2,
    ), (torch.randint(0, 20, (1, 9)),)
