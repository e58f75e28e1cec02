"""Generative models of medical images."""

import torch

SOURCE = "pip:monai-generative==0.2.3"
IMPORTS = "generative"
STUBS = "lpips"


def quantized():
    from generative.networks.nets import VQVAE

    model = VQVAE(
        2, 1, 1, num_channels=(8, 8), num_res_channels=(8, 8), num_res_layers=1,
        downsample_parameters=((2, 4, 1, 1),) * 2,
        upsample_parameters=((2, 4, 1, 1, 0),) * 2, num_embeddings=8, embedding_dim=4,
    )  # fmt: skip
    return model, (torch.randn(1, 1, 16, 16),)


def autoencoder():
    from generative.networks.nets import AutoencoderKL

    model = AutoencoderKL(
        2, num_res_blocks=(1, 1), num_channels=(8, 8), attention_levels=(False, True), norm_num_groups=4
    )
    return model, (torch.randn(1, 1, 16, 16),), {"train": False}


def diffusion():
    from generative.networks.nets import DiffusionModelUNet

    model = DiffusionModelUNet(
        2, 1, 1, num_res_blocks=(1, 1), num_channels=(8, 8), attention_levels=(False, True), norm_num_groups=4,
        num_head_channels=4, num_class_embeds=3,
    )  # fmt: skip
    return model, (torch.randn(1, 1, 16, 16), torch.tensor([5]), None, torch.tensor([1]))


def language():
    from generative.networks.nets import DecoderOnlyTransformer

    return DecoderOnlyTransformer(20, 16, 8, 1, 2), (torch.randint(0, 20, (2, 8)),)


def adaptive():
    from generative.networks.nets import SPADENet

    return SPADENet(2, 1, 1, 3, (16, 16), [8, 8], z_dim=4, spade_intermediate_channels=8), (
        torch.randn(1, 3, 16, 16), torch.randn(1, 1, 16, 16),
    ), {"train": False}  # fmt: skip


def spectrum():
    from generative.losses import JukeboxLoss

    return JukeboxLoss(2), (torch.randn(1, 1, 16, 16), torch.randn(1, 1, 16, 16))


def adversary():
    from generative.losses import PatchAdversarialLoss

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loss = PatchAdversarialLoss()

        def forward(self, logits):
            return self.loss(logits, target_is_real=True, for_discriminator=True)

    return Loss(), (torch.randn(1, 1, 4, 4),)


def discrepancy():
    from generative.metrics import MMDMetric

    class Metric(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.metric = MMDMetric()

        def forward(self, x, y):
            return self.metric(x, y)

    return Metric(), (torch.randn(3, 1, 8, 8), torch.randn(3, 1, 8, 8)), {"train": False}
