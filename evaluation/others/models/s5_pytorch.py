"""State spaces."""

import torch

SOURCE = "pip:s5-pytorch==0.2.1"
IMPORTS = "s5"


def layer():
    from s5 import S5

    return S5(8, 8), (torch.randn(2, 12, 8),)


def both_directions():
    from s5 import S5

    return S5(8, 8, bidir=True, block_count=2), (torch.randn(2, 12, 8),)


def block():
    from s5 import S5Block

    return S5Block(8, 8, False), (torch.randn(2, 12, 8),)


def liquid():
    from s5 import S5

    return S5(8, 8, liquid=True), (torch.randn(2, 12, 8),)
