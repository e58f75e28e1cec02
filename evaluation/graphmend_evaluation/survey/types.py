"""The model types of the transformers package, from its auto mappings, and the classes that tell most about each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# A model with a head runs its base model too, and one that writes text from anything else runs most.
_MAPPINGS = (
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT",
    "MODEL_FOR_CAUSAL_LM",
    "MODEL_FOR_VISION_2_SEQ",
    "MODEL_FOR_PRETRAINING",
    "MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION",
    "MODEL_FOR_OBJECT_DETECTION",
    "MODEL_FOR_UNIVERSAL_SEGMENTATION",
    "MODEL_FOR_INSTANCE_SEGMENTATION",
    "MODEL_FOR_TEXT_TO_SPECTROGRAM",
    "MODEL_FOR_TEXT_TO_WAVEFORM",
    "MODEL_FOR_CTC",
    "MODEL_FOR_MASK_GENERATION",
    "MODEL_FOR_DEPTH_ESTIMATION",
    "MODEL_FOR_KEYPOINT_DETECTION",
    "MODEL_FOR_TIME_SERIES_PREDICTION",
    "MODEL_FOR_MASKED_LM",
    "MODEL",
    "MODEL_FOR_TOKEN_CLASSIFICATION",
    "MODEL_FOR_IMAGE_CLASSIFICATION",
    "MODEL_FOR_BACKBONE",
    "MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION",
)


@dataclass(frozen=True)
class ModelType:
    """A model type, and its classes in the order in which they are tried."""

    name: str
    classes: tuple[str, ...]


def model_types() -> tuple[ModelType, ...]:
    """All types that have a model class, in the order of their names."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    known = importlib.import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING_NAMES
    mappings = [getattr(auto, f"{name}_MAPPING_NAMES") for name in _MAPPINGS if hasattr(auto, f"{name}_MAPPING_NAMES")]
    found = (ModelType(name, _classes(name, mappings)) for name in sorted(known))
    return tuple(each for each in found if each.classes)


def find_class(name: str) -> type[Any]:
    """The class, by way of the package's own lazy imports. Lets through what importing it raises."""
    transformers = importlib.import_module("transformers")
    found: type[Any] = getattr(transformers, name)
    return found


def _classes(model_type: str, mappings: list[Mapping[str, Any]]) -> tuple[str, ...]:
    names = [mapping[model_type] for mapping in mappings if model_type in mapping]
    return tuple(dict.fromkeys(name if isinstance(name, str) else name[0] for name in names))
