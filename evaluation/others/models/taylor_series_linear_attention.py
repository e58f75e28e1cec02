"""Attention by a Taylor series."""

import torch

SOURCE = "pip:taylor-series-linear-attention==0.2.0"
IMPORTS = "taylor_series_linear_attention"


def attention():
    from taylor_series_linear_attention import TaylorSeriesLinearAttn

    return TaylorSeriesLinearAttn(dim=16, dim_head=4, heads=2), (
        torch.randn(2, 8, 16),
        torch.ones(2, 8, dtype=torch.bool),
    )
