"""Layers for vision, and their operators where they are written in Python."""

import torch

SOURCE = "pip:mmcv-lite==2.2.0"
IMPORTS = "mmcv"
STUBS = "mmcv._ext"


def patch_merging():
    from mmcv.cnn.bricks.transformer import PatchMerging

    return PatchMerging(8, 16), (torch.randn(2, 49, 8), (7, 7))


def patch_embed():
    from mmcv.cnn.bricks.transformer import PatchEmbed

    return PatchEmbed(embed_dims=16, kernel_size=4, stride=4), (torch.randn(2, 3, 18, 18),)


def transformer_layer():
    from mmcv.cnn.bricks.transformer import BaseTransformerLayer

    layer = BaseTransformerLayer(
        attn_cfgs={"type": "MultiheadAttention", "embed_dims": 16, "num_heads": 2},
        ffn_cfgs={"type": "FFN", "embed_dims": 16, "feedforward_channels": 32},
        operation_order=("self_attn", "norm", "ffn", "norm"),
    )
    return layer, (torch.randn(6, 2, 16),)


def generalized_attention():
    from mmcv.cnn.bricks.generalized_attention import GeneralizedAttention

    return GeneralizedAttention(16, num_heads=2, spatial_range=-1, kv_stride=1), (torch.randn(1, 16, 6, 6),)


def drop_path():
    from mmcv.cnn.bricks.drop import DropPath

    return DropPath(0.3), (torch.randn(4, 8, requires_grad=True),)


def weight_standardized():
    from mmcv.cnn.bricks.conv_ws import ConvAWS2d

    return ConvAWS2d(4, 8, 3), (torch.randn(2, 4, 8, 8),)


def convolution():
    from mmcv.cnn import ConvModule

    return ConvModule(4, 8, 3, norm_cfg={"type": "BN"}), (torch.randn(2, 4, 8, 8),)


def non_local():
    from mmcv.cnn import NonLocal2d

    return NonLocal2d(8, sub_sample=True), (torch.randn(2, 8, 8, 8),)


def deformable_attention():
    from mmcv.ops.multi_scale_deform_attn import MultiScaleDeformableAttention

    shapes = torch.tensor([[4, 4], [2, 2]])
    return (
        MultiScaleDeformableAttention(16, num_heads=2, num_levels=2, num_points=2),
        (torch.randn(5, 1, 16), None, torch.randn(20, 1, 16), None, None, None, torch.rand(1, 5, 2, 2), shapes),
        {"train": False},
    )


def points_on_grid():
    from mmcv.ops.point_sample import SimpleRoIAlign

    rois = torch.tensor([[0.0, 1.0, 1.0, 6.0, 6.0], [1.0, 0.0, 2.0, 5.0, 7.0]])
    return SimpleRoIAlign(3, 1.0), (torch.randn(2, 4, 8, 8), rois), {"train": False}
