"""Source separation."""

import torch

SOURCE = "pip:asteroid==0.7.0"
IMPORTS = "asteroid"


def pit_loss():
    from asteroid.losses import PITLossWrapper, pairwise_neg_sisdr

    return PITLossWrapper(pairwise_neg_sisdr, pit_from="pw_mtx"), (
        torch.randn(2, 3, 40, requires_grad=True),
        torch.randn(2, 3, 40),
    )


def mixit_loss():
    from asteroid.losses import MixITLossWrapper, multisrc_neg_sisdr

    return MixITLossWrapper(multisrc_neg_sisdr), (torch.randn(2, 4, 40, requires_grad=True), torch.randn(2, 2, 40))


def sinkpit():
    from asteroid.losses import SinkPITLossWrapper, pairwise_neg_sisdr

    return SinkPITLossWrapper(pairwise_neg_sisdr, n_iter=3), (
        torch.randn(2, 3, 40, requires_grad=True),
        torch.randn(2, 3, 40),
    )


def conv_tasnet():
    from asteroid.models import ConvTasNet

    return ConvTasNet(
        2, n_filters=8, kernel_size=8, stride=4, n_blocks=1, n_repeats=1, bn_chan=8, hid_chan=8, skip_chan=8
    ), (torch.randn(2, 200),)


def dprnn():
    from asteroid.models import DPRNNTasNet

    return DPRNNTasNet(2, n_filters=8, kernel_size=8, stride=4, n_repeats=1, bn_chan=8, hid_size=8, chunk_size=10), (
        torch.randn(2, 200),
    )
