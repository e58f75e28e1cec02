"""The pytest plugin: `--graphmend-trace` for a whole run, the mark `no_graph_breaks` for a test.

It is loaded in every pytest run of an environment that has graphmend, so it imports nothing before it is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from graphmend_evaluation.tracing.live import Recorded

_MARK = "no_graph_breaks"
_BLOCK = pytest.StashKey[contextlib.AbstractContextManager["Recorded"]]()
_FOLDER = "graphmend_trace_folder"
_RECORDED = pytest.StashKey["Recorded"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("graphmend").addoption(
        "--graphmend-trace",
        nargs="?",
        const="trace.json",
        metavar="FILE",
        help="record the graph breaks of all tests in FILE [default: trace.json]",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark, and begin to record."""
    config.addinivalue_line("markers", f"{_MARK}: fail the test when what it compiles has graph breaks")
    output = config.getoption("graphmend_trace", None)
    if output:
        if Path(output).suffix != ".json":  # pytest hands the option whatever stands behind it, a file of tests as well
            raise pytest.UsageError(
                f"--graphmend-trace {output}: not a .json file; write --graphmend-trace=FILE.json, or only "
                "--graphmend-trace behind the names of files and folders"
            )
        folder = getattr(config, "workerinput", {}).get(_FOLDER)
        if folder is not None:
            from graphmend_evaluation.tracing.recorder import Recorder

            recorder = Recorder(folder)
            recorder.start()
            config.add_cleanup(recorder.stop)
            return
        from graphmend_evaluation.tracing.live import trace

        block = trace(output, root=config.rootpath)
        config.stash[_BLOCK] = block
        config.stash[_RECORDED] = block.__enter__()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let a worker of pytest-xdist record to the folder of the process that starts it: one trace for all of them."""
    recorded = node.config.stash.get(_RECORDED, None)
    if recorded is not None:
        node.workerinput[_FOLDER] = recorded.folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the recording, and write it."""
    block = config.stash.get(_BLOCK, None)
    if block is not None:
        block.__exit__(None, None, None)
        del config.stash[_BLOCK]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say where the trace is."""
    output = config.getoption("graphmend_trace", None)
    if output:
        terminalreporter.write_line(f"graphmend: trace in {output}; see it with `graphmend trace --show {output}`")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Record a marked test, and let it fail for what broke."""
    if item.get_closest_marker(_MARK) is None:
        return (yield)
    with _recorded(item.config.rootpath) as recorded:
        result = yield
    from graphmend_evaluation.tracing.assertions import complain

    complain(recorded.result, item.config.rootpath)
    return result


@contextlib.contextmanager
def _recorded(root: Path) -> Iterator[Recorded]:
    import torch

    from graphmend_evaluation.tracing.live import trace

    torch.compiler.reset()
    try:
        with trace(root=root) as recorded:
            yield recorded
    finally:
        torch.compiler.reset()
