"""Small gated units."""

import torch

SOURCE = "pip:minGRU-pytorch==0.2.1"
IMPORTS = "minGRU_pytorch"


def gru():
    from minGRU_pytorch import minGRU

    return minGRU(16), (torch.randn(2, 8, 16),)


def language_model():
    from minGRU_pytorch.minLM import minLM as minGRULM

    return minGRULM(num_tokens=32, dim=16, depth=2), (torch.randint(0, 32, (2, 9)),)
