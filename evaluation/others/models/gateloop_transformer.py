"""Recurrence with gates that depend on the data."""

import torch

SOURCE = "pip:gateloop-transformer==0.2.5"
IMPORTS = "gateloop_transformer"


def transformer():
    from gateloop_transformer import Transformer

    return Transformer(16, num_tokens=20, depth=1, dim_head=8, heads=2), (torch.randint(0, 20, (2, 8)),)


def attention():
    from gateloop_transformer.gateloop_transformer import CausalFullAttention

    return CausalFullAttention(16, dim_head=8, heads=2, data_dependent_rel_pos=True), (torch.randn(2, 8, 16),)


def simple():
    from gateloop_transformer import SimpleGateLoopLayer

    return SimpleGateLoopLayer(16), (torch.randn(2, 8, 16),)


def heinsen():
    from gateloop_transformer import SimpleGateLoopLayer

    return SimpleGateLoopLayer(16, use_heinsen=True), (torch.randn(2, 8, 16),)
