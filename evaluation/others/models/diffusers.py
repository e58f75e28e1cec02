"""Diffusion models."""

import torch

SOURCE = "pip:diffusers==0.35.2"
IMPORTS = "diffusers"


def vq_model():
    from diffusers import VQModel

    return VQModel(block_out_channels=(8,), norm_num_groups=4, latent_channels=4, num_vq_embeddings=8), (
        torch.rand(1, 3, 8, 8),
    )


def unet_with_freeu():
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=8,
        attention_head_dim=4,
        norm_num_groups=4,
    ), (torch.randn(1, 4, 8, 8), 3, torch.randn(1, 4, 8))


def prior_transformer():
    from diffusers import PriorTransformer

    return PriorTransformer(
        num_attention_heads=2,
        attention_head_dim=4,
        num_layers=1,
        embedding_dim=8,
        num_embeddings=4,
        additional_embeddings=4,
    ), {
        "hidden_states": torch.randn(2, 8),
        "timestep": 3,
        "proj_embedding": torch.randn(2, 8),
        "encoder_hidden_states": torch.randn(2, 4, 8),
    }


def lumina():
    from diffusers import AutoencoderKL

    return AutoencoderKL(block_out_channels=(8,), norm_num_groups=4, latent_channels=4), {
        "sample": torch.rand(1, 3, 8, 8),
        "sample_posterior": True,
    }


def spatio_temporal():
    from diffusers import UNet1DModel

    return UNet1DModel(
        sample_size=16, in_channels=2, out_channels=2, extra_in_channels=16, block_out_channels=(32, 32, 64)
    ), (torch.randn(1, 2, 256), torch.tensor([3]))
