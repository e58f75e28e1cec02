"""Transformers with many options."""

import torch

SOURCE = "pip:x-transformers==2.31.10"
IMPORTS = "x_transformers"


def decoder():
    from x_transformers import Decoder, TransformerWrapper

    return TransformerWrapper(
        num_tokens=20,
        max_seq_len=16,
        attn_layers=Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True),
    ), (torch.randint(0, 20, (2, 8)),)


def autoregressive():
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    net = TransformerWrapper(
        num_tokens=20,
        max_seq_len=16,
        attn_layers=Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, layer_dropout=0.5, cross_attend=False),
    )
    return AutoregressiveWrapper(net, mask_prob=0.15), (torch.randint(0, 20, (2, 8)),)


def xl():
    from x_transformers import Decoder, TransformerWrapper, XLAutoregressiveWrapper

    net = TransformerWrapper(
        num_tokens=20,
        max_seq_len=4,
        max_mem_len=4,
        attn_layers=Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, rel_pos_bias=True),
    )
    return XLAutoregressiveWrapper(net), (torch.randint(0, 20, (2, 9)),)


def nonautoregressive():
    from x_transformers import Encoder, TransformerWrapper
    from x_transformers.nonautoregressive_wrapper import NonAutoregressiveWrapper

    net = TransformerWrapper(
        num_tokens=21, max_seq_len=8, attn_layers=Encoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    )
    return NonAutoregressiveWrapper(net, mask_id=20), (torch.randint(0, 20, (2, 8)),)


def continuous():
    from x_transformers import ContinuousAutoregressiveWrapper, ContinuousTransformerWrapper, Decoder

    net = ContinuousTransformerWrapper(
        dim_in=4, dim_out=4, max_seq_len=8, attn_layers=Decoder(dim=16, depth=1, heads=2, attn_dim_head=8)
    )
    return ContinuousAutoregressiveWrapper(net), (torch.randn(2, 8, 4),)


def neo_mlp():
    from x_transformers.neo_mlp import NeoMLP

    return NeoMLP(dim_in=4, dim_out=2, dim_hidden=4, depth=1, dim_model=16, encode_dim=8), (torch.randn(3, 4),)
