"""PointNet and PointNet++."""

import torch

SOURCE = "github:yanx27/Pointnet_Pointnet2_pytorch@eb64fe0b4c24055559cea26299cb485dcb43d8dd"
IMPORTS = "pointnet2_utils"
FOLDER = "models"


def set_abstraction():
    from pointnet2_utils import PointNetSetAbstraction

    return PointNetSetAbstraction(8, 0.4, 4, 6, [8, 8], False), (torch.rand(2, 3, 16), torch.rand(2, 3, 16))


def feature_propagation():
    from pointnet2_utils import PointNetFeaturePropagation

    return PointNetFeaturePropagation(6, [8]), (
        torch.rand(2, 3, 16),
        torch.rand(2, 3, 4),
        torch.rand(2, 2, 16),
        torch.rand(2, 4, 4),
    )


def pointnet():
    from pointnet_cls import get_model

    return get_model(4, normal_channel=False), (torch.rand(2, 3, 16),)
