"""Diffusion models and their samplers."""

import torch

SOURCE = "pip:k-diffusion==0.1.1.post1"
IMPORTS = "k_diffusion"
STUBS = (
    "jsonmerge dctorch torchdiffeq torchsde torchvision torchvision.transforms cleanfid "
    "cleanfid.inception_torchscript clip"
)


def _unet():
    from k_diffusion.models.image_v1 import ImageDenoiserModelV1

    return ImageDenoiserModelV1(3, 16, (1, 1), (16, 32), (False, True))


def image_model():
    return _unet(), (torch.randn(2, 3, 16, 16), torch.rand(2) + 0.1)


def loss():
    from k_diffusion.layers import Denoiser

    class Loss(torch.nn.Module):
        def __init__(self, denoiser):
            super().__init__()
            self.denoiser = denoiser

        def forward(self, x, noise, sigma):
            return self.denoiser.loss(x, noise, sigma)

    return Loss(Denoiser(_unet())), (torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.rand(2) + 0.1)


def image_transformer():
    from k_diffusion.models.image_transformer_v1 import ImageTransformerDenoiserModelV1

    return ImageTransformerDenoiserModelV1(1, 64, 128, 3, 3, (4, 4)), (torch.randn(2, 3, 16, 16), torch.rand(2) + 0.1)


def discrete():
    from k_diffusion.external import DiscreteEpsDDPMDenoiser

    class Net(torch.nn.Module):
        def forward(self, x, t):
            return x * t.view(-1, 1, 1, 1)

    return DiscreteEpsDDPMDenoiser(Net(), torch.linspace(0.99, 0.01, 20), True), (
        torch.randn(2, 3, 4, 4),
        torch.rand(2) + 0.5,
    )


def discrete_velocity():
    from k_diffusion.external import DiscreteVDDPMDenoiser

    class Net(torch.nn.Module):
        def forward(self, x, t):
            return x * t.view(-1, 1, 1, 1)

    return DiscreteVDDPMDenoiser(Net(), torch.linspace(0.99, 0.01, 20), False), (
        torch.randn(2, 3, 4, 4),
        torch.rand(2) + 0.5,
    )


def _sampled(name):
    import k_diffusion

    class Sampler(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Conv2d(3, 3, 1)

        def forward(self, x, sigmas):
            model = lambda x, sigma: self.net(x)  # noqa: E731
            return getattr(k_diffusion.sampling, name)(model, x, sigmas, disable=True)

    return Sampler(), (torch.randn(2, 3, 4, 4), torch.tensor([2.0, 1.0, 0.5, 0.0])), {"train": False}


def sample_euler():
    return _sampled("sample_euler")


def sample_heun():
    return _sampled("sample_heun")


def sample_lms():
    return _sampled("sample_lms")


def sample_dpmpp():
    return _sampled("sample_dpmpp_2m")
