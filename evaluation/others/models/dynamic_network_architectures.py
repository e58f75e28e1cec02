"""Networks for medical images."""

import torch

SOURCE = "pip:dynamic_network_architectures==0.4.4"
IMPORTS = "dynamic_network_architectures"
STUBS = "timm timm.layers"


def _made(name, **options):
    from dynamic_network_architectures.architectures import unet

    return getattr(unet, name)(
        1, 2, [4, 8], torch.nn.Conv2d, 3, [1, 2], **options,
        num_classes=2, n_conv_per_stage_decoder=1, norm_op=torch.nn.InstanceNorm2d, nonlin=torch.nn.ReLU,
    ), (torch.randn(1, 1, 16, 16),)  # fmt: skip


def plain():
    return _made("PlainConvUNet", n_conv_per_stage=1, deep_supervision=False)


def residual():
    return _made("ResidualEncoderUNet", n_blocks_per_stage=1, deep_supervision=False)


def stochastic_depth():
    from dynamic_network_architectures.architectures.resnet import ResNet18_CIFAR

    return ResNet18_CIFAR(2, 3, stochastic_depth_p=0.5), (torch.randn(2, 3, 32, 32),)
