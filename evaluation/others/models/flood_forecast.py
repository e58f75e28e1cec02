"""Forecasting of rivers."""

import torch

SOURCE = "pip:flood-forecast==1.0.dev0"
IMPORTS = "flood_forecast"
STUBS = "shap pytz"


def crossformer():
    from flood_forecast.transformer_xl.cross_former import Crossformer

    return Crossformer(3, 12, 6, 3, win_size=2, factor=2, d_model=16, d_ff=16, n_heads=2, e_layers=2), (
        torch.randn(2, 12, 3),
    )


def dilate():
    from flood_forecast.custom.dilate_loss import DilateLoss

    return DilateLoss(), (torch.randn(2, 5, 1), torch.randn(2, 5, 1, requires_grad=True))


def dual_stage():
    from flood_forecast.da_rnn.model import DARNN

    return DARNN(4, 8, 6, 8), (torch.randn(3, 5, 4),)


def lstm():
    from flood_forecast.basic.lstm_vanilla import LSTMForecast

    return LSTMForecast(6, 3, batch_size=2), (torch.randn(2, 6, 3),)


def gru():
    from flood_forecast.basic.gru_vanilla import VanillaGRU

    return VanillaGRU(3, 8, 1, 1, 0.0), (torch.randn(2, 6, 3),)


def decomposition_linear():
    from flood_forecast.basic.d_n_linear import DLinear

    return DLinear(12, 6, False, 3), (torch.randn(2, 12, 3),)


def normalised_linear():
    from flood_forecast.basic.d_n_linear import NLinear

    return NLinear(12, 6, 3), (torch.randn(2, 12, 3),)


def focal():
    from flood_forecast.custom.focal_loss import FocalLoss

    return FocalLoss(0.5, reduction="mean"), (torch.randn(4, 3, requires_grad=True), torch.randint(0, 3, (4,)))


def penalised():
    from flood_forecast.custom.custom_opt import PenalizedMSELoss

    return PenalizedMSELoss(), (torch.randn(4, 3, requires_grad=True), torch.randn(4, 3))


def root_mean():
    from flood_forecast.custom.custom_opt import RMSELoss

    return RMSELoss(0.1), (torch.randn(4, 3, requires_grad=True), torch.randn(4, 3))


def quantile():
    from flood_forecast.custom.custom_opt import QuantileLoss

    return QuantileLoss([0.1, 0.5, 0.9]), (torch.randn(4, 3, requires_grad=True), torch.randn(4))


def decoder():
    from flood_forecast.transformer_xl.transformer_basic import CustomTransformerDecoder

    return CustomTransformerDecoder(12, 6, 3, d_model=16, n_layers_encoder=1, forward_dim=16), (torch.randn(2, 12, 3),)
