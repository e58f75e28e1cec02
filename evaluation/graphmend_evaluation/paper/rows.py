"""Which rows of the published table run here, and what each stands for."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

_MODELS = "graphmend_evaluation.paper.models"


@dataclass(frozen=True)
class Published:
    """A row of the published table: breaks found, and how many percent of them its authors' tool removed."""

    model: str
    breaks: int
    fixed_percent: int


@dataclass(frozen=True)
class Row:
    """One of our rows. The first of `factories` is counted, the others show that more calls behave too.

    `stands_for` are the models of the published table with the same break sites; empty for a row of our own.
    """

    name: str
    factories: tuple[str, ...]
    stands_for: tuple[str, ...] = ()
    module: str = _MODELS

    @property
    def models(self) -> tuple[str, ...]:
        """The factories as `package.module:factory`."""
        return tuple(f"{self.module}:{factory}" for factory in self.factories)


ROWS = (
    Row("t5", ("t5",), ("t5-small", "t5-base", "t5-3b", "flan-t5-large", "inclusively-reformulation-it5")),
    Row("whisper", ("whisper",), ("whisper-large-v3", "whisper-small", "whisper-base")),
    Row("bart", ("bart",)),
    Row("bart-float16", ("bart_float16",), ("bart-large-cnn", "bart-base", "rebel-large")),
    Row("marian", ("marian",)),
    Row("marian-float16", ("marian_float16",), ("opus-mt-fr-en",)),
    Row("blenderbot", ("blenderbot",), ("blenderbot-400M-distill",)),
    Row("pegasus", ("pegasus",), ("PegasusForCausalLM",)),
    Row("biogpt", ("biogpt",), ("biogpt",)),
    Row("layoutlmv3", ("layoutlmv3",), ("layoutlmv3-base",)),
    Row("phi3-longrope", ("phi3", "phi3_short_long_short", "phi3_long_short_long"), ("Phi-4-mini-instruct",)),
    Row("longformer", ("longformer", "longformer_calls", "longformer_global_calls"), ("longformer-base-4096",)),
    Row("grounding-dino", ("grounding_dino", "grounding_dino_calls"), ("grounding-dino-tiny", "grounding-dino-base")),
    Row("clap", ("clap", "clap_calls"), ("clap-htsat-fused",)),
)


class UnknownRow(Exception):
    """A row that does not exist. The text is one line."""


def choose(names: str | None) -> tuple[Row, ...]:
    """Rows by their comma-separated names, in the order of the table; all of them for None.

    Raises `UnknownRow` for a name that is none of theirs.
    """
    if names is None:
        return ROWS
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    known = {row.name for row in ROWS}
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise UnknownRow(f"no row {', '.join(unknown) or 'given'}; there are {', '.join(row.name for row in ROWS)}")
    return tuple(row for row in ROWS if row.name in wanted)


@functools.cache
def published() -> dict[str, Published]:
    """The published table by model."""
    text = resources.files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    return {
        row["model"]: Published(row["model"], row["breaks"], row["fixed_percent"]) for row in json.loads(text)["rows"]
    }
