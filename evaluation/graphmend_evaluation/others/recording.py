"""Record a model of a builder file."""

from __future__ import annotations

from graphmend_evaluation.others.measuring import MeasuringOthers
from graphmend_evaluation.survey.recording import Recording


class RecordingOthers(Recording, MeasuringOthers):
    """Records what a user would; a model that raises in eager mode is none."""
