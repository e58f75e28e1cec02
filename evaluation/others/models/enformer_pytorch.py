"""Genomes."""

import torch

SOURCE = "pip:enformer-pytorch==0.8.12"
IMPORTS = "enformer_pytorch"


def enformer():
    from enformer_pytorch import Enformer

    model = Enformer.from_hparams(
        dim=48,
        depth=1,
        heads=2,
        output_heads={"human": 4},
        target_length=4,
        num_downsamples=3,
        dim_divisible_by=4,
        use_tf_gamma=False,
    )
    return model, (torch.randint(0, 5, (1, 64)),), {"train": False}
