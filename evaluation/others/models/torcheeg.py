"""Networks for brain waves."""

import torch

SOURCE = "pip:torcheeg==1.1.3"
IMPORTS = "torcheeg"
STUBS = "mne mne.viz lmdb torch_scatter spectrum torch_geometric"


def convolutional():
    from torcheeg.models.cnn.ccnn import CCNN

    return CCNN(in_channels=4, num_classes=2), (torch.randn(2, 4, 9, 9),)


def filter_bank():
    from torcheeg.models.cnn.fbcnet import FBCNet

    return FBCNet(num_electrodes=4, chunk_size=64, in_channels=3, num_S=4, stride_factor=4), (torch.randn(2, 3, 4, 64),)


def asymmetry():
    from torcheeg.models.cnn.tsception import TSCeption

    return TSCeption(num_electrodes=4, sampling_rate=64, num_T=3, num_S=3, hid_channels=8), (torch.randn(2, 1, 4, 128),)


def graph():
    from torcheeg.models.gnn.dgcnn import DGCNN

    return DGCNN(in_channels=5, num_electrodes=6, hid_channels=8, num_layers=2), (torch.randn(2, 6, 5),)


def local_global_graph():
    from torcheeg.models.gnn.lggnet import LGGNet

    return LGGNet([[0, 1], [2, 3]], in_channels=1, num_electrodes=4, chunk_size=64, sampling_rate=64,
                  num_T=4, hid_channels=8), (torch.randn(2, 1, 4, 64),)  # fmt: skip


def gru():
    from torcheeg.models.rnn.gru import GRU

    return GRU(num_electrodes=4, hid_channels=8), (torch.randn(2, 4, 16),)


def glow():
    from torcheeg.models.flow.bglow import BGlow

    return BGlow(in_channels=4, grid_size=(8, 8), hidden_channels=8, num_steps=1, num_blocks=2), (
        torch.randn(2, 4, 8, 8),
    )


def conditional_diffusion():
    from torcheeg.models.ddpm.bcddpm import BCUNet

    return BCUNet(in_channels=4, grid_size=(8, 8)), (
        torch.randn(2, 4, 8, 8),
        torch.randint(0, 10, (2,)),
        torch.randint(0, 2, (2,)),
    )
