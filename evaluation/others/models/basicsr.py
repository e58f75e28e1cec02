"""Restoration of images and videos."""

import torch

SOURCE = "pip:basicsr==1.4.2"
IMPORTS = "basicsr"
STUBS = "torchvision.transforms.functional_tensor lmdb cv2 tb_nightly"


def swinir():
    from basicsr.archs.swinir_arch import SwinIR

    model = SwinIR(
        img_size=16, embed_dim=12, depths=(2,), num_heads=(2,), window_size=4, mlp_ratio=2.0, upsampler="pixelshuffle"
    )
    return model, (torch.rand(1, 3, 16, 16),), {"train": False}


def spynet():
    from basicsr.archs.spynet_arch import SpyNet

    return SpyNet(), (torch.rand(1, 3, 40, 40), torch.rand(1, 3, 40, 40)), {"train": False}


def toflow():
    from basicsr.archs.tof_arch import TOFlow

    return TOFlow(), (torch.rand(1, 7, 3, 32, 32),), {"train": False}


def gan_loss():
    from basicsr.losses.gan_loss import GANLoss

    return GANLoss("wgan_softplus"), (torch.randn(2, 1, requires_grad=True), True)


def charbonnier():
    from basicsr.losses.basic_loss import CharbonnierLoss

    return CharbonnierLoss(), (
        torch.rand(2, 3, 8, 8, requires_grad=True),
        torch.rand(2, 3, 8, 8),
        torch.rand(2, 1, 8, 8),
    )


def ecbsr():
    from basicsr.archs.ecbsr_arch import ECBSR

    return ECBSR(3, 3, 2, 8, True, "prelu", 2), (torch.rand(1, 3, 16, 16),), {"train": False}


def duf():
    from basicsr.archs.duf_arch import DUF

    return DUF(scale=2, num_layer=16), (torch.rand(1, 7, 3, 16, 16),), {"train": False}
