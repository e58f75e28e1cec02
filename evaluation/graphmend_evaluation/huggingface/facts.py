"""How far to shrink, and what of a configuration the rules for one attribute must know of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VOCABULARY = 256
_FIRST_SPECIAL = VOCABULARY - 1


@dataclass(frozen=True)
class Recipe:
    """How far to shrink. `widths` is None to leave every width as it is."""

    name: str
    widths: str | None
    layers: int = 2
    width: int = 64
    heads: int = 4
    image: int = 32


RECIPES = (
    Recipe("flat", "flat"),
    Recipe("scaled", "scaled"),
    Recipe("large picture", "flat", image=64),
    Recipe("few layers", None, layers=2, image=64),
    Recipe("few layers, own picture", None, layers=2, image=0),
    Recipe("own size", None, layers=10**6, image=0),
)
_WIDTH_NAMES = (
    "hidden_size",
    "d_model",
    "n_embd",
    "embed_dim",
    "hidden_dim",
    "dim",
    "embedding_dim",
    "decoder_hidden_size",
    "d_embed",
    "emb_dim",
    "d_latents",
    "width",
    "projection_dim",
    "model_dim",
    "encoder_hidden_size",
)
_LAYER_NAMES = (
    "num_hidden_layers",
    "num_layers",
    "n_layer",
    "n_layers",
    "encoder_layers",
    "decoder_layers",
    "depth",
    "num_blocks",
)


class Facts:
    """What of a configuration the rules for one attribute must know of the others."""

    def __init__(self, config: Any, recipe: Recipe) -> None:
        self.config = config
        self.recipe = recipe
        self.own = vars(config)
        self.width = self._width()
        self.old_layers = self._first_int(_LAYER_NAMES)
        self.layers = self._layers()
        self.heads = self._first_int(("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads"))
        self.patch = self._patch()
        self.specials: dict[int, int] = {}

    def _first_int(self, names: Sequence[str]) -> int | None:
        for name in names:
            value: Any = self.own.get(name, getattr(self.config, name, None) if name in self._mapped() else None)
            if is_int(value) and value > 0:
                return int(value)
        return None

    def _mapped(self) -> Mapping[str, str]:
        found: Mapping[str, str] = getattr(self.config, "attribute_map", {})
        return found

    def _width(self) -> int | None:
        found = self._first_int(_WIDTH_NAMES)
        if found is not None:
            return found
        lists = [v for n, v in self.own.items() if re.search(r"(hidden_sizes|embed_dims?|dims?|channels)$", n)]
        sizes = [max(v) for v in lists if isinstance(v, list | tuple) and v and all(is_int(i) for i in v)]
        return max(sizes, default=None)

    def _layers(self) -> int:
        wanted = self.recipe.layers
        for name, value in self.own.items():
            if re.search(r"out_indices|out_features|neck_hidden_sizes", name) and isinstance(value, list | tuple):
                wanted = max(wanted, len(value))
            # Layers of several kinds take turns: one of each is wanted.
            if re.search(r"_(period|interval)$", name) and is_int(value) and 1 < value <= 4:
                wanted = max(wanted, value)
            if name in ("layer_types", "layers_block_type", "block_types") and isinstance(value, list | tuple):
                wanted = max(wanted, _until_all_kinds(value))
        return min(wanted, self.old_layers) if self.old_layers else wanted

    def _patch(self) -> int | None:
        value = self.own.get("patch_size", self.own.get("patch_sizes"))
        if isinstance(value, list | tuple) and value and all(is_int(item) for item in value):
            return int(max(value))
        return int(value) if is_int(value) else None

    @property
    def image(self) -> int:
        """The side of a picture."""
        if self.recipe.image >= 64 or (self.patch is not None and self.patch >= 7):
            return self.recipe.image
        return 64

    def scaled(self, value: int, *, step: int = 8, least: int = 8) -> int:
        """A width, in the same relation to the model's width as before."""
        if self.recipe.widths is None:
            return value
        ratio = self.recipe.width / self.width if self.width else 1 / 12
        return min(value, max(least, round(value * ratio / step) * step))

    def special(self, value: int) -> int:
        """A place in the small vocabulary for a token that is known by its number."""
        if value < VOCABULARY:
            return value
        return self.specials.setdefault(value, _FIRST_SPECIAL - value % 97)


def is_int(value: Any) -> bool:
    """Whether `value` is a whole number and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def _until_all_kinds(kinds: Sequence[Any]) -> int:
    try:
        return max(kinds.index(kind) for kind in set(kinds)) + 1
    except TypeError:
        return 0
