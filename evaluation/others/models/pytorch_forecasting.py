"""Forecasting."""

import torch

SOURCE = "pip:pytorch-forecasting==1.8.0"
IMPORTS = "pytorch_forecasting"


def quantile_loss():
    from pytorch_forecasting.metrics import QuantileLoss

    return QuantileLoss(), (torch.randn(2, 4, 7, requires_grad=True), torch.randn(2, 4))


def smape():
    from pytorch_forecasting.metrics import SMAPE

    return SMAPE(), (torch.randn(2, 4, 1, requires_grad=True), torch.randn(2, 4))


def gated_residual():
    from pytorch_forecasting.models.temporal_fusion_transformer.sub_modules import VariableSelectionNetwork

    return VariableSelectionNetwork(
        {"a": 4, "b": 4},
        8,
        input_embedding_flags={"a": True},
        single_variable_grns={},
        prescalers={"b": torch.nn.Linear(1, 4)},
    ), ({"a": torch.randn(2, 3, 4), "b": torch.randn(2, 3, 1)},)


def lstm():
    from pytorch_forecasting.layers import LSTM

    return LSTM(4, 8, batch_first=True), (torch.randn(2, 5, 4),)
