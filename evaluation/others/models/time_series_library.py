"""Models of time series."""

import torch

SOURCE = "github:thuml/Time-Series-Library@4e938a1767106324dd753b2a44832bf870a0252e"
IMPORTS = "models"
STUBS = "mamba_ssm sktime reformer_pytorch"


def _config(**more):
    from types import SimpleNamespace

    base = {
        "task_name": "long_term_forecast",
        "seq_len": 24,
        "label_len": 12,
        "pred_len": 12,
        "enc_in": 3,
        "dec_in": 3,
        "c_out": 3,
        "d_model": 16,
        "d_ff": 16,
        "n_heads": 2,
        "e_layers": 1,
        "d_layers": 1,
        "dropout": 0.0,
        "embed": "timeF",
        "freq": "h",
        "factor": 1,
        "activation": "gelu",
        "top_k": 2,
        "num_kernels": 2,
        "moving_avg": 5,
        "distil": True,
        "version": "fourier",
        "mode_select": "random",
        "modes": 4,
        "channel_independence": 1,
        "decomp_method": "moving_avg",
        "down_sampling_layers": 1,
        "down_sampling_window": 2,
        "down_sampling_method": "avg",
        "use_norm": 1,
        "p_hidden_dims": [8, 8],
        "p_hidden_layers": 2,
        "seg_len": 6,
        "expand": 2,
        "d_conv": 4,
        "num_class": 3,
        "output_attention": False,
        "patch_len": 4,
        "win_size": 2,
    }
    return SimpleNamespace(**{**base, **more})


def _inputs():
    return (torch.randn(2, 24, 3), torch.randn(2, 24, 4), torch.randn(2, 24, 3), torch.randn(2, 24, 4))


def autoformer():
    from models.Autoformer import Model

    return Model(_config()), _inputs()


def times_net():
    from models.TimesNet import Model

    return Model(_config()), _inputs()


def informer():
    from models.Informer import Model

    return Model(_config(factor=3)), _inputs()


def fedformer():
    from models.FEDformer import Model

    return Model(_config()), _inputs()


def etsformer():
    from models.ETSformer import Model

    return Model(_config()), _inputs()


def pyraformer():
    from models.Pyraformer import Model

    return Model(_config(), [2, 2], 3), _inputs()


def film():
    from models.FiLM import Model

    return Model(_config()), _inputs()


def time_mixer():
    from models.TimeMixer import Model

    return Model(_config()), _inputs()
