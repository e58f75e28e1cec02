"""Probabilistic forecasting."""

import torch

SOURCE = "pip:gluonts==0.17.0"
IMPORTS = "gluonts"


def deepar():
    from gluonts.torch.model.deepar.module import DeepARModel

    return (
        DeepARModel(
            "D",
            6,
            3,
            num_feat_dynamic_real=1,
            num_feat_static_real=1,
            num_feat_static_cat=1,
            cardinality=[2],
            hidden_size=8,
            num_parallel_samples=2,
        ),
        (
            torch.zeros(2, 1, dtype=torch.long),
            torch.randn(2, 1),
            torch.randn(2, 6 + 7, 1),
            torch.rand(2, 6 + 7),
            torch.ones(2, 6 + 7),
            torch.randn(2, 3, 1),
        ),
        {"train": False},
    )


def mean_scaler():
    from gluonts.torch.scaler import MeanScaler

    return MeanScaler(dim=-1, keepdim=True), (torch.rand(2, 6), torch.ones(2, 6))


def simple_feedforward():
    from gluonts.torch.model.simple_feedforward.module import SimpleFeedForwardModel

    return SimpleFeedForwardModel(3, 6), (torch.rand(2, 6), torch.ones(2, 6))


def tft():
    from gluonts.torch.model.patch_tst.module import PatchTSTModel

    return PatchTSTModel(3, 8, 4, 2, 4, 0, 8, 2, 8, 0.0, "relu", True, 1), (torch.rand(2, 8), torch.ones(2, 8))
