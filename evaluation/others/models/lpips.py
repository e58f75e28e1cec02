"""A perceptual distance of images."""

import torch

SOURCE = "pip:lpips==0.1.4"
IMPORTS = "lpips"


def _images():
    return torch.rand(2, 3, 64, 64, requires_grad=True), torch.rand(2, 3, 64, 64)


def squeeze():
    import lpips

    return lpips.LPIPS(pretrained=False, pnet_rand=True, net="squeeze", verbose=False), _images()


def spatial():
    import lpips

    made = lpips.LPIPS(pretrained=False, pnet_rand=True, net="alex", spatial=True, verbose=False)
    return made, (*_images(), True, True)


def ranking():
    import lpips

    return lpips.BCERankingLoss(), (torch.rand(2, 1, 1, 1), torch.rand(2, 1, 1, 1), torch.rand(2, 1, 1, 1))


def euclidean():
    import lpips

    return lpips.L2(use_gpu=False, colorspace="RGB"), (torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16))
