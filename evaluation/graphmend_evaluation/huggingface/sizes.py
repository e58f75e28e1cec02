"""A smaller value for one attribute of a configuration, by its name, or by its size where the name says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from graphmend_evaluation.huggingface.facts import VOCABULARY, Facts, is_int

# Below this, a number without a telling name is left as it is.
_SMALL = 64

# What is None until a user says it, and what no model can be made without.
_REQUIRED = {"vocab_size": VOCABULARY, "prediction_length": 8, "context_length": 32}


def smaller(name: str, value: Any, facts: Facts) -> Any:
    """`value`, or a smaller one of the same kind where the name or the size of `value` allows it."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return _switch(name, value)
    if is_int(value):
        return _smaller_int(name, value, facts)
    if isinstance(value, list | tuple) and value:
        return _smaller_list(name, value, facts)
    if isinstance(value, dict):
        return {key: _smaller_in_dict(key, item, facts) for key, item in value.items()}
    return value


def _switch(name: str, value: Any) -> Any:
    if value is None:
        return _REQUIRED.get(name)
    # Fast kernels are not at hand, and the plain path is what a graph is made of.
    return False if name in ("use_mamba_kernels", "use_fast_path") else value


def _smaller_int(name: str, value: int, facts: Facts) -> int:
    if value <= 0:
        return value
    for pattern, rule in _RULES:
        if pattern.search(name):
            return rule(name, value, facts)
    return value if value <= _SMALL or facts.recipe.widths is None else _width(name, value, facts)


def _width(name: str, value: int, facts: Facts) -> int:
    recipe = facts.recipe
    if recipe.widths is None or value <= 16:
        return value
    if recipe.widths == "scaled":
        return facts.scaled(value)
    return min(value, recipe.width)


def _inner_width(name: str, value: int, facts: Facts) -> int:
    if facts.recipe.widths == "flat":
        return min(value, facts.recipe.width * 2)
    return facts.scaled(value)


def _heads(name: str, value: int, facts: Facts) -> int:
    if facts.recipe.widths is None:
        return value
    if facts.heads is not None and re.search(r"key_value|kv", name):
        return value if value <= 2 else 2 if value < facts.heads else facts.recipe.heads
    return min(value, facts.recipe.heads) if value % 2 == 0 or value > 4 else 2 if value > 1 else 1


def _head_width(name: str, value: int, facts: Facts) -> int:
    if facts.recipe.widths is None:
        return value
    return min(value, facts.recipe.width // facts.recipe.heads)


def _layers(name: str, value: int, facts: Facts) -> int:
    return min(value, facts.layers)


def _layer_index(name: str, value: int, facts: Facts) -> int:
    if facts.old_layers is None or value < facts.layers:
        return value
    return max(1, min(value * facts.layers // facts.old_layers, facts.layers - 1))


def _few(count: int) -> Callable[[str, int, Facts], int]:
    return lambda name, value, facts: min(value, count)


def _image(name: str, value: int, facts: Facts) -> int:
    return min(value, facts.image) if facts.recipe.image else value


def _patch_size(name: str, value: int, facts: Facts) -> int:
    if facts.recipe.image == 0 or value <= 8:
        return value
    return 8 if value % 8 == 0 else 7 if value % 7 == 0 else value


def _token(name: str, value: int, facts: Facts) -> int:
    return facts.special(value)


def _same(name: str, value: int, facts: Facts) -> int:
    return value


# The first that matches decides.
_RULES: tuple[tuple[re.Pattern[str], Callable[[str, int, Facts], int]], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"_token_ids?$|_token_index$|_token$|_id$|_idx$", _token),
        (r"type_vocab_size|num_channels|in_channels|num_labels|num_codebooks|n_codes$|image_token_length", _same),
        (
            r"vocab_size|^vocab|codebook_size|num_buckets$|num_hash_buckets|num_embeddings$|embedding_size$_",
            _few(VOCABULARY),
        ),
        (r"^n_group|^num_expert_group", _few(2)),
        (r"topk_group", _few(1)),
        (
            r"sampling_rate|hop_length|n_fft|bandwidth|upsampl|downsampl|stride|kernel|dilation|padding|groups?$|rate$",
            _same,
        ),
        (r"num_experts_per|experts_per_tok|top_?k$|num_selected|experts_top_k", _few(2)),
        (r"experts$|_num_experts|^num_experts|n_expert|local_experts", _few(4)),
        (r"heads?$|heads_", _heads),
        (r"head_dim$|d_kv|head_size|kv_channels|rotary_dim|qk_\w*dim|v_head|head_width", _head_width),
        (
            r"layers?_(idx|index|offset)|_offset$|first_k|dense_replace|start_layer|_layer_start|skip_layer",
            _layer_index,
        ),
        (r"_(period|interval|step|freq|every\w*)$", _few(2)),
        (r"num_\w*layers?$|n_layers?$|^layers$|_layers$|^depth$|_depth$|num_blocks$|n_layer|num_\w*_blocks$", _layers),
        (r"image_size|img_size|^resolution|_resolution$|image_(height|width)|input_size$_", _image),
        (r"patch_size$", _patch_size),
        (r"num_frames|max_num_frames|frames_per", _few(4)),
        (r"window|block_size|block_length|chunk_(size|length)|chunk_len", _few(8)),
        (r"num_random_blocks", _few(1)),
        (r"num_queries|num_object_queries|num_query_tokens|num_latents|n_query|num_proposals", _few(16)),
        (r"max_source_positions", _few(32)),
        (
            r"max_\w*position|n_positions|n_ctx|max_seq|max_\w*length|seq_length|max_text_len|context_length$_",
            _few(128),
        ),
        (r"spectrogram_length|max_length", _few(128)),
        (r"mel_bins|feature_size$|input_feat|num_mel|nb_mels|n_mels", _few(128)),
        (r"intermediate|ffn|d_ff|n_inner|mlp_dim|mlp_hidden|feedforward|inner_dim", _inner_width),
        (r"hidden|d_model|n_embd|embed|_dim$|^dim$|width|channels$|d_\w+$", _width),
    )
)


def _smaller_list(name: str, value: Sequence[Any], facts: Facts) -> Any:
    if name.endswith("_types") and isinstance(value[0], list | tuple) and facts.old_layers:
        # [[["global", "local"], 12]]: kinds of layers, and how many times they are repeated
        return [[kinds, max(1, facts.layers // len(kinds))] for kinds, _ in value]
    one_each = facts.old_layers is not None and len(value) == facts.old_layers
    if not all(is_int(item) for item in value):
        return value[: facts.layers] if one_each and not re.search(r"features|stage", name) else value
    # A list in a configuration stays a list, and a tuple a tuple.
    return type(value)(_smaller_numbers(name, value, facts, one_each and len(value) > 4))  # type: ignore[call-arg]


def _smaller_numbers(name: str, value: Sequence[int], facts: Facts, one_each: bool) -> Sequence[int]:
    widths = facts.recipe.widths
    if re.search(r"_ids?$|tokens$", name):
        return [facts.special(item) for item in value]
    if re.search(r"depths|num_blocks|layer_depths|layers$|num_\w*layers|blocks_per|encoder_blocks|num_encoder", name):
        return [min(item, 1 if len(value) > 1 else facts.layers) for item in value]
    if one_each and facts.old_layers is not None and facts.old_layers > facts.layers:
        return [_smaller_int(name, item, facts) for item in value[: facts.layers]]
    if "heads" in name:
        return value if widths is None else [min(item, 2) for item in value]
    if name.endswith("out_indices") and not name.startswith("_") and facts.old_layers and max(value) >= facts.layers:
        return range(facts.layers)[-len(value) :]
    if re.search(r"layer|index|indices", name) and "out_" not in name:
        return sorted({_layer_index(name, item, facts) for item in value})
    if re.search(r"image|img|resolution|input_size", name) and facts.recipe.image:
        return [min(item, facts.image) for item in value]
    if name == "axial_pos_shape":
        return [8, 16]
    if widths is not None and max(value) > 16:
        if "axial" in name:  # these add up to the width
            return [facts.scaled(item) for item in value]
        if re.search(r"hidden|embed|dim|channels|width|sizes", name):
            return [_in_proportion(item, max(value), facts) for item in value]
    return value


def _in_proportion(item: int, biggest: int, facts: Facts) -> int:
    return item if item <= 16 else max(16, round(item * facts.recipe.width / biggest / 16) * 16)


def _smaller_in_dict(key: str, value: Any, facts: Facts) -> Any:
    if isinstance(value, list | tuple) and re.search(r"section", key) and value and facts.recipe.widths:
        wanted = facts.recipe.width // facts.recipe.heads // 2
        total = sum(value)
        parts = [item * wanted // total for item in value]
        parts[0] += wanted - sum(parts)
        return type(value)(parts)
    return value
