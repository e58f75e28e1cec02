"""`graphmend_evaluation.trace`: record a part of a program from within."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.trace import document, run
from graphmend_codemod.trace.document import Trace
from graphmend_evaluation.tracing.recorder import Recorder


class Recorded:
    """What a `trace` block recorded; `result` is there once the block has ended.

    Recorders of other processes that write to `folder` until then are part of it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._trace: Trace | None = None

    @property
    def result(self) -> Trace:
        """The trace. Raises `RuntimeError` inside the block."""
        if self._trace is None:
            raise RuntimeError("the trace is complete when its `with` block has ended")
        return self._trace

    def finish(self, trace: Trace) -> None:
        """Keep the trace: the block has ended."""
        self._trace = trace


@contextlib.contextmanager
def trace(
    output: str | Path | None = None, *, root: str | Path | None = None, source: bool = True
) -> Iterator[Recorded]:
    """Record every graph break, compilation and recompilation in the block, also those of an exception.

    `output` gets the trace as `trace.json`. `root` is the project, by default that of the current folder; `source` says
    whether source lines are kept. Code that was compiled before the block is not seen: `torch.compiler.reset()` first
    if it is to be.
    """
    folder = Path(root) if root is not None else load_settings(Path()).root
    with tempfile.TemporaryDirectory(prefix="graphmend-trace-") as events:
        recorded = Recorded(events)
        recorder = Recorder(events)
        recorder.start()
        try:
            yield recorded
        finally:
            recorder.stop()
            found = run.gathered(Path(events), folder, "a block", source=source)
            recorded.finish(found)
            if output is not None:
                Path(output).write_text(document.as_json(found), encoding="utf-8", errors="backslashreplace")
