"""Networks of space and time."""

import torch

SOURCE = "pip:make-a-video-pytorch==0.4.0"
IMPORTS = "make_a_video_pytorch"


def unet():
    from make_a_video_pytorch import SpaceTimeUnet

    model = SpaceTimeUnet(
        dim=8,
        channels=3,
        dim_mult=(1, 2),
        resnet_block_depths=(1, 1),
        temporal_compression=(False, False),
        self_attns=(False, True),
        condition_on_timestep=False,
        attn_pos_bias=False,
        flash_attn=False,
        attn_dim_head=8,
        attn_heads=2,
    )
    return model, (torch.randn(1, 3, 4, 16, 16),)


def attention():
    from make_a_video_pytorch import SpatioTemporalAttention

    return SpatioTemporalAttention(dim=8, dim_head=8, heads=2, flash=False), (torch.randn(1, 8, 3, 8, 8),)
