"""Networks for tables."""

import torch

SOURCE = "pip:LightAutoML==0.4.2"
IMPORTS = "lightautoml"
STUBS = "lightgbm optuna optuna.samplers optuna.trial catboost json2html poetry cmaes hyperopt"


def _net():
    from lightautoml.ml_algo.torch_based import nn_models

    return nn_models


def dense():
    return _net().DenseModel(6, 1, [1, 1]), (torch.randn(4, 6),)


def residual():
    return _net().ResNetModel(6, 1, [1, 1], noise_std=0.05), (torch.randn(4, 6),)


def trees():
    return _net().NODE(6, 1, layer_dim=8, num_layers=1), (torch.randn(4, 6),)


def interaction():
    return _net().AutoInt(4, 8), (torch.randn(3, 4, 8),)


def tabular_attention():
    return _net().TabNet(6, 1, n_d=4, n_a=4, n_steps=2, virtual_batch_size=4), (torch.randn(8, 6),)


def random_recurrent():
    from lightautoml.text.dl_transformers import RandomLSTM

    return RandomLSTM(8, 8), ({"text": torch.randn(2, 5, 8), "length": torch.tensor([5, 3])},), {"train": False}


def random_projection():
    from lightautoml.text.dl_transformers import BOREP

    return BOREP(8, 8), ({"text": torch.randn(2, 5, 8), "length": torch.tensor([5, 3])},), {"train": False}
