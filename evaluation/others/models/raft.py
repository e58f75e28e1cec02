"""RAFT: optical flow."""

import torch

SOURCE = "github:princeton-vl/RAFT@2888e15a51fa41140771d3f498ed8023cff098d1"
IMPORTS = "raft"
FOLDER = "core"


def raft():
    import argparse

    from raft import RAFT

    return (
        RAFT(argparse.Namespace(small=True, dropout=0, alternate_corr=False, mixed_precision=False)),
        (torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128), 2),
        {"train": False},
    )
