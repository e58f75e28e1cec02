"""Autoencoders of many kinds."""

import torch

SOURCE = "pip:pythae==0.1.2"
IMPORTS = "pythae"
STUBS = "wandb mlflow comet_ml"


class _Model(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, data):
        return self.model({"data": data}).loss


def _images():
    return (torch.rand(4, 1, 8, 8),)


def variational():
    from pythae.models import VAE, VAEConfig

    return _Model(VAE(VAEConfig(input_dim=(1, 8, 8), latent_dim=4))), _images()


def quantized():
    from pythae.models import VQVAE, VQVAEConfig

    return _Model(VQVAE(VQVAEConfig(input_dim=(1, 8, 8), latent_dim=4, num_embeddings=8))), _images()


def quantized_moving():
    from pythae.models import VQVAE, VQVAEConfig

    config = VQVAEConfig(input_dim=(1, 8, 8), latent_dim=4, num_embeddings=8, use_ema=True, decay=0.9)
    return _Model(VQVAE(config)), _images()


def factors():
    from pythae.models import BetaTCVAE, BetaTCVAEConfig

    return _Model(BetaTCVAE(BetaTCVAEConfig(input_dim=(1, 8, 8), latent_dim=4))), _images()


def hamiltonian():
    from pythae.models import HVAE, HVAEConfig

    return _Model(HVAE(HVAEConfig(input_dim=(1, 8, 8), latent_dim=4))), _images()


def hyperspherical():
    from pythae.models import SVAE, SVAEConfig

    return _Model(SVAE(SVAEConfig(input_dim=(1, 8, 8), latent_dim=4))), _images()


def poincare():
    from pythae.models import PoincareVAE, PoincareVAEConfig

    return _Model(PoincareVAE(PoincareVAEConfig(input_dim=(1, 8, 8), latent_dim=4))), _images()


def adversarial():
    from pythae.models import VAEGAN, VAEGANConfig

    return _Model(VAEGAN(VAEGANConfig(input_dim=(1, 8, 8), latent_dim=4, reconstruction_layer=-1))), _images()


def flows():
    from pythae.models import VAE_LinNF, VAE_LinNF_Config

    return _Model(VAE_LinNF(VAE_LinNF_Config(input_dim=(1, 8, 8), latent_dim=4))), _images()


def mixture_prior():
    from pythae.models import VAMP, VAMPConfig

    return _Model(VAMP(VAMPConfig(input_dim=(1, 8, 8), latent_dim=4, number_components=3))), _images()


def wasserstein():
    from pythae.models import WAE_MMD, WAE_MMD_Config

    return _Model(WAE_MMD(WAE_MMD_Config(input_dim=(1, 8, 8), latent_dim=4))), _images()
