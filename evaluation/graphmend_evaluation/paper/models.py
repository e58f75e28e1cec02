"""Small models with random weights, one for each row: the same classes, dtypes and inputs as in the published table.

Factories for `graphmend_evaluation.measure`. Two layers, two heads, width 64: the break sites are in the code, not in
the size. A list of inputs is several calls: the second with other values, the third with other sizes.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, PreTrainedModel  # noqa: F401 - half of the seconds of every row's import

Inputs = dict[str, Any]

VOCABULARY = 128
_LENGTHS = (8, 8, 12)
_SEQ2SEQ: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_position_embeddings": 64,
}
_ENCODER: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}


def t5() -> tuple[nn.Module, list[Inputs]]:
    """Encoder and decoder: a cache given as a tuple is warned about."""
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=VOCABULARY, d_model=64, d_kv=32, d_ff=128, num_layers=2, num_heads=2)
    return T5ForConditionalGeneration(config).eval(), _three_ids()


def whisper() -> tuple[nn.Module, list[Inputs]]:
    """As t5, with a spectrogram for the encoder."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    sizes = {name: size for name, size in _SEQ2SEQ.items() if name != "max_position_embeddings"}
    config = WhisperConfig(
        **sizes,
        max_source_positions=50,
        max_target_positions=32,
        num_mel_bins=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    inputs = [{"input_features": torch.randn(1, 16, 100), "decoder_input_ids": _ids(1, each)} for each in _LENGTHS]
    return WhisperForConditionalGeneration(config).eval(), inputs


def bart() -> tuple[nn.Module, list[Inputs]]:
    """In float32, the dtype that the published rows do not use."""
    return _bart(), _three_ids()


def bart_float16() -> tuple[nn.Module, list[Inputs]]:
    """In float16 overflow is guarded after every layer; one token for the decoder."""
    return _bart().half(), _three_batches()


def marian() -> tuple[nn.Module, list[Inputs]]:
    """As bart."""
    return _marian(), _three_ids()


def marian_float16() -> tuple[nn.Module, list[Inputs]]:
    """As bart_float16."""
    return _marian().half(), _three_batches()


def blenderbot() -> tuple[nn.Module, list[Inputs]]:
    """As bart."""
    from transformers import BlenderbotConfig, BlenderbotForConditionalGeneration

    return BlenderbotForConditionalGeneration(BlenderbotConfig(**_SEQ2SEQ)).eval(), _three_ids()


def pegasus() -> tuple[nn.Module, list[Inputs]]:
    """The decoder alone."""
    from transformers import PegasusConfig, PegasusForCausalLM

    return PegasusForCausalLM(PegasusConfig(**_SEQ2SEQ)).eval(), _three_texts()


def biogpt() -> tuple[nn.Module, list[Inputs]]:
    """A decoder alone."""
    from transformers import BioGptConfig, BioGptForCausalLM

    return BioGptForCausalLM(BioGptConfig(**_ENCODER)).eval(), _three_texts()


def layoutlmv3() -> tuple[nn.Module, list[Inputs]]:
    """Text and boxes without a picture: a mask is warned about."""
    from transformers import LayoutLMv3Config, LayoutLMv3Model

    config = LayoutLMv3Config(**_ENCODER, visual_embed=False, coordinate_size=8, shape_size=16)
    corners = torch.tensor([0, 0, 500, 900])
    inputs = [
        {**text, "bbox": corners + torch.randint(0, 100, (*text["input_ids"].shape, 4))} for text in _three_texts()
    ]
    return LayoutLMv3Model(config).eval(), inputs


def phi3() -> tuple[nn.Module, list[Inputs]]:
    """One short call, as the published count has it."""
    return _phi3(), [{"input_ids": _ids(1, 8)}]


def phi3_short_long_short() -> tuple[nn.Module, list[Inputs]]:
    """Calls below, above and again below the length at which the rotary frequencies change."""
    return _phi3(), [{"input_ids": _ids(1, 8)}, {"input_ids": _ids(1, 24)}, {"input_ids": _ids(1, 8)}]


def phi3_long_short_long() -> tuple[nn.Module, list[Inputs]]:
    """The same, with the long call first."""
    return _phi3(), [{"input_ids": _ids(1, 24)}, {"input_ids": _ids(1, 8)}, {"input_ids": _ids(1, 24)}]


def longformer() -> tuple[nn.Module, Inputs]:
    """20 tokens: not a multiple of the attention window, so that they are padded."""
    from transformers import LongformerConfig, LongformerModel

    return LongformerModel(LongformerConfig(**_ENCODER, attention_window=8)).eval(), {"input_ids": _ids(1, 20)}


def longformer_calls() -> tuple[nn.Module, list[Inputs]]:
    """Two calls that are padded and one that is not."""
    return longformer()[0], [{"input_ids": _ids(1, length)} for length in (20, 20, 32)]


def longformer_global_calls() -> tuple[nn.Module, list[Inputs]]:
    """Tokens that attend to all others: none, two, and then one."""
    masks = torch.zeros(3, 1, 20, dtype=torch.long)
    masks[1, 0, :2] = masks[2, 0, 0] = 1
    return longformer()[0], [{"input_ids": _ids(1, 20), "global_attention_mask": mask} for mask in masks.unbind()]


def grounding_dino() -> tuple[nn.Module, Inputs]:
    """Text and picture; many sites depend on the data."""
    from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    backbone = SwinConfig(
        window_size=7,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 1, 1],
        image_size=32,
        out_features=["stage2", "stage3", "stage4"],
        out_indices=[2, 3, 4],
    )
    # 101 and 102 open and close a text, 1012 ends a phrase: the vocabulary must know them.
    text = {**_ENCODER, "vocab_size": 1100, "model_type": "bert"}
    config = GroundingDinoConfig(
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        num_queries=4,
        num_feature_levels=3,
        encoder_n_points=2,
        decoder_n_points=2,
        max_text_len=16,
        backbone_config=backbone,
        text_config=text,
    )
    return GroundingDinoForObjectDetection(config).eval(), _picture_and_text(32, [101, 5, 6, 1012, 7, 8, 1012, 102])


def grounding_dino_calls() -> tuple[nn.Module, list[Inputs]]:
    """Phrases of other lengths in the second call, in the third a larger picture."""
    return grounding_dino()[0], [
        _picture_and_text(32, [101, 5, 6, 1012, 7, 8, 1012, 102]),
        _picture_and_text(32, [101, 5, 1012, 6, 7, 8, 1012, 102]),
        _picture_and_text(48, [101, 5, 6, 7, 1012, 8, 1012, 102]),
    ]


def clap() -> tuple[nn.Module, Inputs]:
    """Fusion on, and a clip that is longer than the window."""
    from transformers import ClapConfig, ClapModel

    audio = {
        "hidden_size": 32,
        "patch_embeds_hidden_size": 16,
        "depths": [1, 1],
        "num_attention_heads": [2, 2],
        "enable_fusion": True,
    }
    config = ClapConfig(text_config=dict(_ENCODER), audio_config=audio, projection_dim=32)
    return ClapModel(config).eval(), _clips([True])


def clap_calls() -> tuple[nn.Module, list[Inputs]]:
    """A clip that is longer than the window, one that is not, and then one of each."""
    return clap()[0], [_clips([True]), _clips([False]), _clips([False, True])]


def _ids(batch: int, length: int) -> Tensor:
    return torch.randint(3, VOCABULARY, (batch, length))


def _three_texts() -> list[Inputs]:
    return [{"input_ids": _ids(1, length)} for length in _LENGTHS]


def _three_ids() -> list[Inputs]:
    return [{"input_ids": _ids(1, length), "decoder_input_ids": _ids(1, length)} for length in _LENGTHS]


def _batch_with_mask(batch: int = 4, length: int = 32) -> Inputs:
    mask = torch.ones(batch, length, dtype=torch.long)
    return {"input_ids": _ids(batch, length), "attention_mask": mask, "decoder_input_ids": _ids(batch, 1)}


def _three_batches() -> list[Inputs]:
    return [_batch_with_mask(), _batch_with_mask(), _batch_with_mask(3, 20)]


def _picture_and_text(size: int, ids: list[int]) -> Inputs:
    text = torch.tensor([ids])
    return {"pixel_values": torch.randn(1, 3, size, size), "input_ids": text, "attention_mask": torch.ones_like(text)}


def _clips(longer: list[bool]) -> Inputs:
    ids = _ids(len(longer), 8)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "input_features": torch.randn(len(longer), 4, 1001, 64),
        "is_longer": torch.tensor([[each] for each in longer]),
    }


def _bart() -> nn.Module:
    from transformers import BartConfig, BartForConditionalGeneration

    model: nn.Module = BartForConditionalGeneration(BartConfig(**_SEQ2SEQ)).eval()
    return model


def _marian() -> nn.Module:
    from transformers import MarianConfig, MarianMTModel

    model: nn.Module = MarianMTModel(MarianConfig(**_SEQ2SEQ, pad_token_id=0, decoder_start_token_id=0)).eval()
    return model


def _phi3() -> nn.Module:
    from transformers import Phi3Config, Phi3ForCausalLM

    rotary = {"type": "longrope", "short_factor": [1.0] * 16, "long_factor": [2.0] * 16}
    config = Phi3Config(
        **_ENCODER,
        num_key_value_heads=2,
        original_max_position_embeddings=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        rope_scaling=rotary,
    )
    model: nn.Module = Phi3ForCausalLM(config).eval()
    return model
