"""Record models of a work tree in child processes, and remember what was recorded of the same code.

Like `adapter`, it knows `graphmend_evaluation`, and is imported on demand.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graphmend_codemod.evaluation.port import RecordedModel
from graphmend_evaluation.isolation import Policy, in_parallel
from graphmend_evaluation.remembered_rows import RowMemory, digest_of_files
from graphmend_evaluation.tracing.recording import record_model


class Recorder:
    """Records with the code of `tree`. `folder` receives what the child processes write, a folder for each recording;
    `memory`, if there is one, keeps traces for a later run."""

    def __init__(
        self,
        tree: Path,
        folder: Path,
        *,
        policy: Policy,
        jobs: int,
        memory: RowMemory | None,
        progress: Callable[[str], None],
    ) -> None:
        self._tree = tree
        self._folder = folder
        self._policy = policy
        self._jobs = jobs
        self._memory = memory
        self._progress = progress
        self._known: dict[tuple[str, str], RecordedModel] = {}

    def record(self, models: Mapping[str, str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
        """One recording for each of `models`, names by what they are shown as. `changed` are the files of the tree that
        are not those of the base."""
        content = {path: (self._tree / path).read_bytes() for path in changed}
        code = digest_of_files(content)
        todo = [shown for shown in models if (shown, code) not in self._known]
        done = 0

        def one(number: int, policy: Policy) -> None:
            nonlocal done
            shown = todo[number]
            self._known[shown, code] = self._recorded(shown, models[shown], content, policy, f"{len(self._known):04d}")
            done += 1
            self._progress(f"[{done}/{len(todo)}] recorded {shown}")

        if todo:
            self._progress(f"recording {len(todo)} model{'' if len(todo) == 1 else 's'}")
        in_parallel(one, len(todo), jobs=self._jobs, policy=self._policy)
        return tuple(self._known[shown, code] for shown in models)

    def _recorded(
        self, shown: str, model: str, content: Mapping[str, bytes], policy: Policy, name: str
    ) -> RecordedModel:
        known = None if self._memory is None else self._memory.read_trace(model, content)
        if known is not None:
            return RecordedModel(shown, known)
        folder = self._folder / f"{name}-{digest_of_files({model: b''})[:8]}"
        recording, trace = record_model(self._tree, model, folder=folder, policy=policy)
        shutil.rmtree(folder, ignore_errors=True)
        if trace is None:
            return RecordedModel(shown, None, recording.message)
        if self._memory is not None:
            self._memory.write_trace(model, content, trace)
        return RecordedModel(shown, trace)
