"""Quality of images."""

import torch

SOURCE = "pip:pyiqa==0.1.16"
IMPORTS = "pyiqa"

_CALLED = {"train": False}


def _pair(size):
    return torch.rand(1, 3, size, size), torch.rand(1, 3, size, size)


def structure():
    from pyiqa.archs.ssim_arch import SSIM

    return SSIM(), _pair(192), _CALLED


def scales():
    from pyiqa.archs.ssim_arch import MS_SSIM

    return MS_SSIM(), _pair(192), _CALLED


def gradients():
    from pyiqa.archs.gmsd_arch import GMSD

    return GMSD(), _pair(64), _CALLED


def features():
    from pyiqa.archs.fsim_arch import FSIM

    return FSIM(), _pair(64), _CALLED


def information():
    from pyiqa.archs.vif_arch import VIF

    return VIF(), _pair(64), _CALLED


def saliency():
    from pyiqa.archs.vsi_arch import VSI

    return VSI(), _pair(64), _CALLED


def laplacian():
    from pyiqa.archs.nlpd_arch import NLPD

    return NLPD(), _pair(64), _CALLED


def apparent_distortion():
    from pyiqa.archs.mad_arch import MAD

    return MAD(), _pair(192), _CALLED


def entropy():
    from pyiqa.archs.entropy_arch import Entropy

    return Entropy(), _pair(64)[:1], _CALLED


def complex_wavelets():
    from pyiqa.archs.ssim_arch import CW_SSIM

    return CW_SSIM(), _pair(192), _CALLED
