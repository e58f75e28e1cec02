"""Moving averages with gates."""

import torch

SOURCE = "pip:mega-pytorch==0.1.0"
IMPORTS = "mega_pytorch"


def language():
    from mega_pytorch import Mega

    return Mega(dim=16, num_tokens=20, depth=1), (torch.randint(0, 20, (2, 8)),)


def layer():
    from mega_pytorch import MegaLayer

    return MegaLayer(dim=16, ema_heads=4, attn_dim_qk=8, attn_dim_value=16, laplacian_attn_fn=True), (
        torch.randn(2, 8, 16),
    )


def average():
    from mega_pytorch.mega_pytorch import MultiHeadedEMA

    return MultiHeadedEMA(dim=16, heads=4, bidirectional=True), (torch.randn(2, 8, 16),)


def generation():
    from mega_pytorch import Mega
    from mega_pytorch.autoregressive_wrapper import AutoregressiveWrapper

    return AutoregressiveWrapper(Mega(dim=16, num_tokens=20, depth=1)), (torch.randint(0, 20, (2, 9)),)
