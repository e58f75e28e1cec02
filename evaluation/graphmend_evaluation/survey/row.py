"""What the survey says of one model type in one arm, and the file of lines that it is kept in."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend_evaluation.results import Counts, from_json, to_json

MODES = {
    "eval": "evaluation, without gradients",
    "train": "training, with labels and gradients",
    "generate": "decoding: `generate` of four tokens with a static cache, its forward compiled",
    "step": "decoding: the forward of one step with a static cache",
}
"""What can be measured of a model, and what a page says of it."""


@dataclass(frozen=True)
class Row:
    """One model type in one arm.

    `status` is `ok`, `unbuilt` (no small model could be made and called), `failed`, `timeout` or `crashed`; `message`
    says why, in one line. `choice` names the recipe and the inputs, so that a second arm makes the same model.
    `differences` are those of eager mode against the first arm, `compiled` the first thing that the compiled model
    does otherwise than the eager one. `counts` is also None for a type that was compared in eager mode only.
    """

    type: str
    model_class: str
    status: str
    message: str
    seconds: float
    choice: dict[str, Any] | None = None
    counts: Counts | None = None
    compiled: str | None = None
    differences: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when the type was measured."""
        return self.status == "ok"

    @property
    def breaks(self) -> int:
        """Break events; a frame that Dynamo gave up on counts as one where it names none."""
        if self.counts is None:
            return 0
        return max(self.counts.break_events, len(self.counts.skipped_frames))

    @property
    def whole(self) -> bool:
        """True when the model is one graph."""
        return self.ok and self.counts is not None and self.breaks == 0

    def line(self) -> str:
        """For a person who waits."""
        what = f"{self.breaks} breaks" if self.counts is not None else f"{self.status} {self.message}"
        more = "".join(f"; DIFFERENT: {each}" for each in self.differences[:2])
        return f"{self.type} {self.model_class} {what}{more} ({self.seconds:.1f} s)"

    def to_json(self) -> dict[str, Any]:
        """As what `json.dumps` takes."""
        return {field.name: to_json(getattr(self, field.name)) for field in dataclasses.fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Row:
        """The reverse. Raises `TypeError`, `KeyError` or `ValueError` for anything else."""
        counts = data.get("counts")
        differences = tuple(str(each) for each in data.get("differences", ()))
        values = {**data, "counts": None if counts is None else from_json(Counts, counts), "differences": differences}
        return cls(**values)


def read(path: Path) -> list[Row]:
    """The rows of a file, none for a file that does not exist. A last line that was cut off is left out."""
    if not path.is_file():
        return []
    rows: dict[str, Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = Row.from_json(json.loads(line))
        except ValueError:
            continue
        rows[row.type] = row
    return list(rows.values())


def append(path: Path, row: Row) -> None:
    """Keep `row`, whatever happens next."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row.to_json()) + "\n")
