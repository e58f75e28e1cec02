"""Measure a model of a builder file."""

from __future__ import annotations

from pathlib import Path

from graphmend_evaluation.loading import Factory
from graphmend_evaluation.runs import Observed
from graphmend_evaluation.survey.measuring import Measuring


class MeasuringOthers(Measuring):
    """As the survey measures, but a model that raises in eager mode is none."""

    def _eager(self, factory: Factory, folder: Path) -> list[Observed]:
        observed = super()._eager(factory, folder)
        if observed[0].error is not None and self.against is None:
            raise RuntimeError(f"raises in eager mode: {observed[0].error}")
        return observed
