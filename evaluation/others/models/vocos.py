"""A vocoder that predicts spectra."""

import torch

SOURCE = "pip:vocos==0.1.0"
IMPORTS = "vocos"
STUBS = "pytorch_lightning encodec"


def backbone():
    from vocos.models import VocosBackbone

    return VocosBackbone(16, 16, 32, 2), (torch.randn(2, 16, 20),)


def istft_head():
    from vocos.heads import ISTFTHead

    return ISTFTHead(16, 32, 8), (torch.randn(2, 20, 16),)


def istft_center():
    from vocos.heads import ISTFTHead

    return ISTFTHead(16, 32, 8, padding="center"), (torch.randn(2, 20, 16),)


def period_discriminator():
    from vocos.discriminators import MultiPeriodDiscriminator

    return MultiPeriodDiscriminator((2, 3)), (torch.randn(2, 101), torch.randn(2, 101))


def resolution_discriminator():
    from vocos.discriminators import MultiResolutionDiscriminator

    return MultiResolutionDiscriminator((64, 32)), (torch.randn(2, 400), torch.randn(2, 400))


def mel_loss():
    from vocos.loss import MelSpecReconstructionLoss

    return MelSpecReconstructionLoss(8000, 64, 16, 10), (torch.randn(2, 400, requires_grad=True), torch.randn(2, 400))
