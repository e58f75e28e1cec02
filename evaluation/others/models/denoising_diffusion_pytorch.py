"""Diffusion models."""

import torch

SOURCE = "pip:denoising-diffusion-pytorch==2.3.4"
IMPORTS = "denoising_diffusion_pytorch"


def gaussian():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    return GaussianDiffusion(Unet(8, dim_mults=(1, 2), flash_attn=False), image_size=8, timesteps=10), (
        torch.rand(2, 3, 8, 8),
    )


def self_condition():
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet

    return GaussianDiffusion(
        Unet(8, dim_mults=(1, 2), self_condition=True, flash_attn=False), image_size=8, timesteps=10
    ), (torch.rand(2, 3, 8, 8),)


def one_dimensional():
    from denoising_diffusion_pytorch import GaussianDiffusion1D, Unet1D

    return GaussianDiffusion1D(Unet1D(8, dim_mults=(1, 2), channels=3), seq_length=8, timesteps=10), (
        torch.rand(2, 3, 8),
    )


def elucidated():
    from denoising_diffusion_pytorch import ElucidatedDiffusion, Unet

    return ElucidatedDiffusion(Unet(8, dim_mults=(1, 2), flash_attn=False), image_size=8), (torch.rand(2, 3, 8, 8),)


def classifier_free():
    from denoising_diffusion_pytorch.classifier_free_guidance import GaussianDiffusion, Unet

    return (
        GaussianDiffusion(Unet(8, num_classes=3, dim_mults=(1, 2), cond_drop_prob=0.5), image_size=8, timesteps=10),
        (torch.rand(2, 3, 8, 8),),
    )


def continuous_time():
    from denoising_diffusion_pytorch import Unet
    from denoising_diffusion_pytorch.continuous_time_gaussian_diffusion import ContinuousTimeGaussianDiffusion

    return ContinuousTimeGaussianDiffusion(
        Unet(8, dim_mults=(1, 2), flash_attn=False, random_fourier_features=True), image_size=8
    ), (torch.rand(2, 3, 8, 8),)
