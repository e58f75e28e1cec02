"""Linear attention by random features."""

import torch

SOURCE = "pip:performer-pytorch==1.1.4"
IMPORTS = "performer_pytorch"


def language_model():
    from performer_pytorch import PerformerLM

    return PerformerLM(
        num_tokens=20, max_seq_len=16, dim=16, depth=1, heads=2, dim_head=8, feature_redraw_interval=2
    ), (torch.randint(0, 20, (1, 16)),)


def encoder_decoder():
    from performer_pytorch import PerformerEncDec

    return PerformerEncDec(
        dim=16,
        tie_token_embed=True,
        enc_num_tokens=20,
        enc_depth=1,
        enc_heads=2,
        enc_max_seq_len=8,
        dec_num_tokens=20,
        dec_depth=1,
        dec_heads=2,
        dec_max_seq_len=8,
    ), (torch.randint(0, 20, (1, 8)), torch.randint(0, 20, (1, 8)))
