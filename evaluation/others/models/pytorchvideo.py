"""Videos."""

import torch

SOURCE = "pip:pytorchvideo==0.1.5"
IMPORTS = "pytorchvideo.models"


def masked():
    from pytorchvideo.models.masked_multistream import MaskedTemporalPooling

    return MaskedTemporalPooling("max"), (torch.randn(2, 5, 4), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool())


def masked_average():
    from pytorchvideo.models.masked_multistream import MaskedTemporalPooling

    return MaskedTemporalPooling("avg"), (torch.randn(2, 5, 4), torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool())


def transpose_transformer():
    from pytorchvideo.models.masked_multistream import TransposeTransformerEncoder

    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool()
    return TransposeTransformerEncoder(4, num_heads=1, num_layers=1), (torch.randn(2, 5, 4), mask)


def lstm():
    from pytorchvideo.models.masked_multistream import LSTM

    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool()
    return LSTM(4, 4), (torch.randn(2, 5, 4), mask)


def mvit():
    from pytorchvideo.models.vision_transformers import create_multiscale_vision_transformers

    model = create_multiscale_vision_transformers(spatial_size=32, temporal_size=4, depth=2, head_num_classes=4)
    return model, (torch.randn(1, 3, 4, 32, 32),)


def slowfast():
    from pytorchvideo.models.x3d import create_x3d

    return create_x3d(input_clip_length=4, input_crop_size=64, model_num_class=4), (torch.randn(1, 3, 4, 64, 64),)


def memory_bank():
    from pytorchvideo.models.memory_bank import MemoryBank

    model = MemoryBank(torch.nn.Linear(4, 8), None, neg_size=4, temperature=0.07, bank_size=16, dim=8)
    return model, (torch.randn(2, 4), torch.tensor([0, 3]))
