"""What a recorder leaves behind in its process, and what is said of processes."""

from __future__ import annotations

import logging
import multiprocessing
import os
from pathlib import Path

import pytest

from graphmend_codemod.trace.run import gathered
from graphmend_evaluation.tracing.recorder import Recorder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_worker_that_came_to_its_end_is_not_said_to_be_killed(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    record = logging.LogRecord("torch.__trace", logging.DEBUG, __file__, 1, "", (), None)
    record.metadata = {"frame_id": 0, "compilation_metrics": {"co_filename": "train.py", "graph_op_count": 1}}

    def work(killed: bool) -> None:
        recorder.emit(record)
        if killed:
            os._exit(0)

    for killed in (False, True):
        worker = multiprocessing.get_context("fork").Process(target=work, args=(killed,))
        worker.start()
        worker.join(60)
    assert [each.finished for each in gathered(tmp_path, tmp_path, "train.py").processes] == [True, False]


def test_block_in_a_recorded_program_leaves_its_recorder_as_it_was(tmp_path: Path) -> None:
    log = logging.getLogger("torch.__trace")
    whole, block = Recorder(str(tmp_path)), Recorder(str(tmp_path))
    whole.start()
    asked = type(log.handlers)
    block.start()
    block.stop()
    assert type(log.handlers) is asked
    whole.stop()
    assert whole not in log.handlers
    assert type(log.handlers) is list
