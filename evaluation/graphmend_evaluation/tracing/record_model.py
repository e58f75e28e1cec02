"""One model of a worktree, recorded as `graphmend trace --calls` records a program: the child process of `recording`.

    python -m graphmend_evaluation.tracing.record_model --root WORKTREE --model package.module:factory --out FOLDER

`FOLDER/result.json` is one `recording.Recording` when everything is done, and `FOLDER/trace.json` the trace unless that
has a message. Each run has a fork of its own, so that neither finds what another one left in the process.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphmend_evaluation import child_process
from graphmend_evaluation.measure import ModelRun, RunError
from graphmend_evaluation.results import to_json
from graphmend_evaluation.tracing.recording import TRACE, Recording
from graphmend_evaluation.worktree import LoadError

if TYPE_CHECKING:
    from graphmend_evaluation.loading import Factory


class RecordedRun(ModelRun):
    """One model's recording in the making."""

    def record(self) -> Recording:
        """Import, run in eager mode, run compiled, run once more without torch.compile."""
        started = time.monotonic()
        try:
            made = self._recorded()
        except RunError as error:
            made = Recording(self.model, str(error))
        return replace(made, seconds=round(time.monotonic() - started, 3))

    def _recorded(self) -> Recording:
        made = self._factory()
        from graphmend_evaluation.tracing import model_runs  # imports torch, which the worktree may have a say in

        factory = model_runs.as_a_user(made)
        self._stage("running in eager mode")
        calls = int(self._fork(lambda: self._that_run(factory)))
        self._stage("recording the compiled run")
        events = int(self._fork(lambda: self._compile(factory, calls)))
        self._stage("recording the run without torch.compile")
        self._fork(lambda: self._watch(factory, calls))
        (self.folder / "trace.part").replace(self.folder / TRACE)
        return Recording(self.model, calls=calls, events=events)

    def _that_run(self, factory: Factory) -> int:
        from graphmend_evaluation import runs
        from graphmend_evaluation.tracing import model_runs

        model = factory.make()
        eager = runs.observe(model, model.target, self.root)
        calls = model_runs.that_run(eager)
        if not calls:
            raise LoadError(f"the model raises in eager mode: {child_process.one_line(str(eager[0].error))}")
        return calls

    def _compile(self, factory: Factory, calls: int) -> int:
        from graphmend_evaluation.tracing import model_runs

        model = model_runs.few_calls(factory.make(), calls)
        return model_runs.compiled_run(model, self.root, self.folder / "trace.part").break_events

    def _watch(self, factory: Factory, calls: int) -> Any:
        from graphmend_codemod.trace import document
        from graphmend_evaluation.tracing import model_runs

        part = self.folder / "trace.part"
        recorded = document.read(part)
        found = model_runs.plain_run(model_runs.few_calls(factory.make(), calls), self.root, recorded)
        whole = dataclasses.replace(recorded, command=self.model, watched=found)
        part.write_text(document.as_json(whole), encoding="utf-8", errors="backslashreplace")


def main(arguments: list[str] | None = None) -> int:
    """Record, and write `result.json`."""
    options = child_process.parser("tracing.record_model", "Record one model.").parse_args(arguments)
    child_process.begin(options)
    run = RecordedRun(options.root.resolve(), options.model, options.out.resolve(), None)
    child_process.write_json(run.folder / "result.json", to_json(run.record()), indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
