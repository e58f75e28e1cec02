"""Record a model, as a user does with `graphmend trace --calls`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from graphmend_codemod.trace import document
from graphmend_evaluation.loading import Factory
from graphmend_evaluation.recording_rounds import TRACE
from graphmend_evaluation.results import Counts, from_json, to_json
from graphmend_evaluation.runs import Observed
from graphmend_evaluation.survey.measuring import Measuring, SurveyRun, forked
from graphmend_evaluation.survey.row import Row
from graphmend_evaluation.tracing import model_runs


class Recording(Measuring):
    """Makes the calls that a user would record, compiled and then without torch.compile, and writes the trace.

    Neither run finds what another one left in the process. `counts` of the row are those of the strict counter, which
    listens to the same run, and `compiled` says where the trace has other events.
    """

    def measured(self, name: str, class_name: str, factory: Factory, choice: dict[str, Any] | None = None) -> Row:
        """The row of one recorded model. What it raises is the row's message, and then there is no trace."""
        self._folder = self.out / name
        (self._folder / TRACE).unlink(missing_ok=True)
        return super().measured(name, class_name, model_runs.as_a_user(factory), choice)

    def _compiled(self, factory: Factory, eager: list[Observed]) -> tuple[Counts, str | None]:
        self.calls = model_runs.that_run(eager)
        part, counted = self._folder / "trace.part", self._folder / "counts.json"
        counted.unlink(missing_ok=True)
        forked(lambda: self._record(factory, part, counted))
        if not counted.is_file():
            raise RuntimeError("the compiled run that is recorded died")
        recorded, counts = document.read(part), from_json(Counts, json.loads(counted.read_text(encoding="utf-8")))
        found = model_runs.plain_run(self._few_calls(factory.make()), self.root, recorded)
        part.write_text(document.as_json(dataclasses.replace(recorded, watched=found)), encoding="utf-8")
        part.replace(self._folder / TRACE)
        events = sum(site.events for site in recorded.sites)
        return counts, None if events == counts.break_events else f"the trace has {events} events"

    def _record(self, factory: Factory, target: Path, counted: Path) -> None:
        counts = model_runs.compiled_run(self._few_calls(factory.make()), self.root, target)
        counted.write_text(json.dumps(to_json(counts)), encoding="utf-8")


class RecordingSurvey(Recording, SurveyRun):
    """Records a small model of transformers."""
