"""LoFTR: matching without a detector."""

import torch

SOURCE = "github:zju3dv/LoFTR@df7ca80f917334b94cfbe32cc2901e09a80e70a8"
IMPORTS = "src"
STUBS = "yacs yacs.config kornia.utils.grid"


def coarse_matching():
    from src.loftr.utils.coarse_matching import CoarseMatching

    config = {
        "thr": 0.01,
        "border_rm": 0,
        "train_coarse_percent": 0.4,
        "train_pad_num_gt_min": 2,
        "match_type": "dual_softmax",
        "dsmax_temperature": 0.1,
    }
    data = {"hw0_i": (32, 32), "hw1_i": (32, 32), "hw0_c": (4, 4), "hw1_c": (4, 4), "bs": 1}
    return CoarseMatching(config), (torch.randn(1, 16, 8), torch.randn(1, 16, 8), data), {"train": False}
