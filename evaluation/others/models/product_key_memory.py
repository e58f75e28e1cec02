"""Large memories with product keys."""

import torch

SOURCE = "pip:product-key-memory==0.3.0"
IMPORTS = "product_key_memory"
STUBS = "colt5_attention"


def memory():
    from product_key_memory import PKM

    return PKM(16, heads=2, num_keys=8, topk=4, dim_head=8), (torch.randn(2, 6, 16),)


def normalized():
    from product_key_memory import PKM

    return PKM(16, heads=2, num_keys=8, topk=4, dim_head=8, use_layernorm=True, pre_layernorm=True), (
        torch.randn(2, 6, 16), torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]).bool(),
    )  # fmt: skip


def language():
    from product_key_memory.transformer import Transformer

    model = Transformer(
        dim=16, num_tokens=20, depth=2, seq_len=8, pkm_layers=1, dim_head=8, heads=2,
        pkm_kwargs={"heads": 2, "num_keys": 8, "topk": 4, "dim_head": 8},
    )  # fmt: skip
    return model, (torch.randint(0, 20, (2, 9)),)
