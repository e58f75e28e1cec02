"""Pretrained transformers for time series."""

import torch

SOURCE = "pip:chronos-forecasting==2.3.2"
IMPORTS = "chronos"


def _config(**more):
    from transformers import T5Config

    return T5Config(
        vocab_size=8, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, pad_token_id=0,
        decoder_start_token_id=0, is_gated_act=False, feed_forward_proj="relu", **more
    )  # fmt: skip


def bolt():
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    config = _config(
        chronos_config={
            "context_length": 64,
            "prediction_length": 16,
            "input_patch_size": 8,
            "input_patch_stride": 8,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
        }
    )
    context = torch.randn(2, 60)
    context[0, :5] = torch.nan
    return ChronosBoltModelForForecasting(config), (context,), {"train": False}


def bolt_training():
    from chronos.chronos_bolt import ChronosBoltModelForForecasting

    config = _config(
        dropout_rate=0.0,
        chronos_config={
            "context_length": 64,
            "prediction_length": 16,
            "input_patch_size": 8,
            "input_patch_stride": 8,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
        },
    )
    return ChronosBoltModelForForecasting(config), (
        torch.randn(2, 70),
        None,
        torch.randn(2, 12),
        torch.ones(2, 12, dtype=torch.bool),
    )


def chronos_two():
    from chronos.chronos2.config import Chronos2CoreConfig
    from chronos.chronos2.model import Chronos2Model

    config = Chronos2CoreConfig(
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        chronos_config={
            "context_length": 64,
            "output_patch_size": 8,
            "input_patch_size": 8,
            "input_patch_stride": 8,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
            "use_arcsinh": True,
            "max_output_patches": 4,
            "time_encoding_scale": 64,
        },
    )
    return Chronos2Model(config), (torch.randn(3, 60),), {"train": False}


def instance_norm():
    from chronos.chronos_bolt import InstanceNorm

    return InstanceNorm(), (torch.randn(2, 20),), {"train": False}


def mean_scale_bins():
    from chronos.chronos import ChronosConfig, MeanScaleUniformBins

    config = ChronosConfig(
        tokenizer_class="MeanScaleUniformBins", tokenizer_kwargs={"low_limit": -15.0, "high_limit": 15.0},
        context_length=32, prediction_length=8, n_tokens=64, n_special_tokens=2, pad_token_id=0, eos_token_id=1,
        use_eos_token=True, model_type="seq2seq", num_samples=2, temperature=1.0, top_k=5, top_p=1.0,
    )  # fmt: skip
    bins = MeanScaleUniformBins(-15.0, 15.0, config)

    class Tokens(torch.nn.Module):
        def forward(self, context):
            return bins.context_input_transform(context)

    return Tokens(), (torch.randn(2, 20),), {"train": False}
