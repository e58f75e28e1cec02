"""Click-through models."""

import torch

SOURCE = "pip:deepctr-torch==0.3.0"
IMPORTS = "deepctr_torch"


def _columns():
    from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat

    return [
        SparseFeat("a", 4, 4),
        SparseFeat("b", 4, 4),
        DenseFeat("c", 1),
        VarLenSparseFeat(SparseFeat("h", 5, 4), 3, "mean"),
    ]


def _inputs():
    return torch.cat([torch.randint(0, 4, (3, 2)).float(), torch.randn(3, 1), torch.randint(0, 5, (3, 3)).float()], 1)


def deepfm():
    from deepctr_torch.models import DeepFM

    return DeepFM(_columns(), _columns(), dnn_hidden_units=(8,)), (_inputs(),)


def xdeepfm():
    from deepctr_torch.models import xDeepFM

    return xDeepFM(_columns(), _columns(), dnn_hidden_units=(8,), cin_layer_size=(4, 4)), (_inputs(),)


def autoint():
    from deepctr_torch.models import AutoInt

    return AutoInt(_columns(), _columns(), dnn_hidden_units=(8,), att_head_num=2), (_inputs(),)


def din():
    from deepctr_torch.inputs import SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import DIN

    columns = [
        SparseFeat("item", 5, 4, embedding_name="item"),
        VarLenSparseFeat(SparseFeat("hist_item", 5, 4, embedding_name="item"), 3, length_name="length"),
    ]
    return DIN(columns, ["item"], dnn_hidden_units=(8,), att_hidden_size=(4,)), (
        torch.tensor([[1.0, 1, 2, 0, 2], [2.0, 1, 2, 3, 3]]),
    )


def dien():
    from deepctr_torch.inputs import SparseFeat, VarLenSparseFeat
    from deepctr_torch.models import DIEN

    columns = [
        SparseFeat("item", 5, 4, embedding_name="item"),
        VarLenSparseFeat(SparseFeat("hist_item", 5, 4, embedding_name="item"), 3, length_name="length"),
    ]
    return DIEN(columns, ["item"], gru_type="AUGRU", dnn_hidden_units=(8,)), (
        torch.tensor([[1.0, 1, 2, 0, 2], [2.0, 1, 2, 3, 3]]),
    )


def fibinet():
    from deepctr_torch.models import FiBiNET

    return FiBiNET(_columns(), _columns(), dnn_hidden_units=(8,)), (_inputs(),)
