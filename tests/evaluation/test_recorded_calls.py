"""`fix --trace --opaque`: statements of which recorded calls tell what they give become operators of the graph."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from graphmend_codemod.trace import document
from graphmend_codemod.trace.hints import with_hints
from graphmend_evaluation.tracing.calls import Watcher
from tests.evaluation.recorded_fixes import (
    OUTSIDE,
    SOLVER,
    Recorded,
    calls_of,
    model_with,
    one_graph,
    recorded,
)

pytestmark = [
    pytest.mark.usefixtures("quick"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
]


def test_a_call_into_scipy_is_one_operator(tmp_path: Path) -> None:
    found = Recorded(tmp_path, SOLVER, calls_of((3, 4), (5, 6)), gradients=False)
    assert "2 recorded calls" in found.reasons, found.reasons
    x = torch.randn(7, 8)
    eager = found.model()(x)
    assert torch.equal(one_graph(found.model(), x), eager)
    assert torch.allclose(one_graph(found.model(), x, backend="inductor"), eager)
    assert torch.equal(one_graph(found.model(), x, dynamic=True), eager)


def test_sizes_that_agree_by_accident_are_asked_for(tmp_path: Path) -> None:
    """Two calls had as many rows as columns: which of both the result follows is not known."""
    before = OUTSIDE.format("x", "x.sum(0)")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 3), (5, 5)], before=before)
    assert "x.shape[0] == x.shape[1]" in found.after
    for shape in ((4, 4), (2, 6)):  # the second takes the author's own path
        x = torch.randn(shape)
        torch.compiler.reset()
        assert torch.equal(torch.compile(found.model(), backend="aot_eager")(x), found.model()(x))
    assert one_graph(found.model(), torch.randn(4, 4)).shape == (4,)


def test_a_size_that_no_call_varied_pins_all_the_others(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x.sum(0)")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4), (3, 4)], before=before)
    assert "x.shape[0] == 3" in found.after
    assert "x.shape[1] == 4" in found.after
    x = torch.randn(5, 6)
    torch.compiler.reset()
    assert torch.equal(torch.compile(found.model(), backend="aot_eager")(x), found.model()(x))


def test_a_size_that_an_attribute_decides_is_asked_for(tmp_path: Path) -> None:
    before = "\n@torch.compiler.disable\ndef outside(x, count):\n    return x[:count] * 2\n"
    init = "self.count = 2"
    found = recorded(tmp_path, "y = outside(x, self.count)\nreturn y + 1", [(3, 4), (5, 6)], before=before, init=init)
    assert "self.count == 2" in found.after
    model: Any = found.model()
    x = torch.randn(6, 4)
    with torch.no_grad():
        assert torch.equal(one_graph(model, x), model(x))
    model.count = 4  # takes the author's own path
    torch.compiler.reset()
    compiled: Any = torch.compile(model, backend="aot_eager")
    assert torch.equal(compiled(x), model(x))


def test_a_size_that_nothing_explains_is_a_symbol(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x[x > 0]")
    found = recorded(tmp_path, "y = outside(x)\nreturn (y * 2).sum()", [(30,), (41,)], before=before)
    assert '("n1",)' in found.after
    for seed in range(3):
        x = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        assert torch.allclose(one_graph(found.model(), x), found.model()(x))


def test_a_list_that_a_loop_fills_is_taken_in_with_what_makes_and_joins_it(tmp_path: Path) -> None:
    """The number of elements depends on the data: the operator begins with the empty list and ends with `cat`."""
    body = """
    parts: list = []
    scale: int = 2
    for count in (x[:, 0].abs() * 5).int().tolist():
        parts.append(torch.arange(count) * scale)
    places = torch.cat(parts)
    return places + x.sum()
    """
    found = recorded(tmp_path, textwrap.dedent(body).strip(), [(3, 4), (5, 4)])
    assert "2 recorded calls" in found.reasons, found.reasons
    for rows in (2, 6):
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows))
        assert torch.allclose(one_graph(found.model(), x), found.model()(x))


def test_a_list_that_is_given_and_filled_is_left_alone(tmp_path: Path) -> None:
    before = "KEPT = []"
    body = "for count in x[:, 0].abs().int().tolist():\n    KEPT.append(torch.arange(count))\nreturn x + len(KEPT)"
    found = recorded(tmp_path, body, [(3, 4), (5, 4)], before=before)
    assert found.after == found.before, found.after


def test_a_result_that_is_other_than_recorded_raises(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x.double() if x[0, 0] > 10 else x * 2")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4), (5, 6)], before=before)
    x = torch.full((3, 4), 20.0)
    with pytest.raises(RuntimeError, match=r"float64 of \[3, 4\], and in the recorded run torch.float32"):
        one_graph(found.model(), x)
    assert found.model()(x).dtype is torch.float64


def test_a_view_of_an_input_is_left_alone(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x[:1]")
    found = recorded(tmp_path, "y = outside(x)\ny.add_(1)\nreturn x", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before
    assert "changed `x` in place" in found.reasons  # with what follows, as the view cannot be given back


def test_results_of_one_memory_are_left_alone(tmp_path: Path) -> None:
    """What is written into one of them is in the other: an operator gives each memory of its own."""
    before = "\n@torch.compiler.disable\ndef outside(x):\n    found = x * 2\n    return found, found[:1]\n"
    found = recorded(tmp_path, "a, b = outside(x)\na.add_(1)\nreturn a.sum() + b", [(3, 4), (5, 6)], before=before)
    x = torch.randn(4, 7)
    torch.compiler.reset()
    assert torch.allclose(torch.compile(found.model(), backend="aot_eager")(x), found.model()(x))
    assert "a.add_(1)\n    return a.sum() + b" in found.after, found.reasons  # with what follows


def test_a_view_that_no_recorded_call_had_raises(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x if x.sum() > 100 else x * 2")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4), (5, 6)], before=before)
    with pytest.raises(RuntimeError, match="memory of an argument"):
        one_graph(found.model(), torch.full((3, 4), 20.0))


def test_a_statement_that_writes_an_input_is_left_alone(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x.mul_(2).sum(0)")
    found = recorded(tmp_path, "x = x + 1\ny = outside(x)\nreturn x + y", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before
    assert "changed `x` in place" in found.reasons


def test_a_write_that_no_recorded_call_did_raises(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "(x.mul_(2) if x.sum() > 100 else x).sum(0)")
    found = recorded(tmp_path, "x = x + 1\ny = outside(x)\nreturn x + y", [(3, 4), (5, 6)], before=before)
    with pytest.raises(RuntimeError, match="wrote into an argument"):
        one_graph(found.model(), torch.full((3, 4), 20.0))


def test_none_in_one_call_is_left_alone(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "None if len(x) > 4 else x * 2")
    found = recorded(tmp_path, "y = outside(x)\nreturn x if y is None else x + y", [(3, 4), (5, 6)], before=before)
    assert found.after == found.before


def test_a_dtype_follows_an_input(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x.sum(0)")
    source = model_with("y = outside(x)\nreturn y + 1", before)
    calls = lambda: [(torch.randn(3, 4),), (torch.randn(5, 6, dtype=torch.float64),)]  # noqa: E731
    found = Recorded(tmp_path, source, calls, gradients=False)
    assert "x.dtype, x.device" in found.after
    for dtype in (torch.float32, torch.float64):
        assert one_graph(found.model(), torch.randn(2, 3, dtype=dtype)).dtype is dtype


def test_a_trace_that_was_cut_is_told_apart(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x * 2")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4), (5, 6)], before=before)
    found.path.write_text(found.before)
    watched = tuple(dataclasses.replace(each, facts=each.facts[:2]) for each in found.trace.watched)
    hinted = with_hints(dataclasses.replace(found.trace, watched=watched), found.settings)
    findings = api.check([found.path], hinted, cache=False).findings
    assert any("record it again" in (each.declined or "") for each in findings)


def test_one_recorded_call_is_not_enough(tmp_path: Path) -> None:
    before = OUTSIDE.format("x", "x * 2")
    found = recorded(tmp_path, "y = outside(x)\nreturn y + 1", [(3, 4)], before=before)
    assert found.after == found.before
    assert "record at least 2 calls" in found.reasons


def test_without_a_trace_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(SOLVER)
    api.fix([path], Settings(tmp_path, opaque=True), write=True, cache=False)
    assert path.read_text() == SOLVER


@pytest.mark.slow
def test_the_command_runs_a_program_once_more_and_its_trace_fixes_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    program = "model = torch.compile(Model(), backend='eager', dynamic=False)\n"
    program += (
        "with torch.no_grad():\n    for rows in (3, 5):\n        model(torch.randn(rows, rows + 1))\nprint('ran')\n"
    )
    (tmp_path / "train.py").write_text(
        SOLVER + "\n\nif __name__ == '__main__':\n    " + program.replace("\n", "\n    ")
    )

    def graphmend(*words: str) -> str:
        command = [sys.executable, "-m", "graphmend_codemod", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert graphmend("trace", "--calls", "-q", "--", sys.executable, "train.py").splitlines().count("ran") == 2
    graphmend("fix", "--trace", "trace.json", "--opaque", "--no-cache")
    assert "_recorded_operator" in (tmp_path / "train.py").read_text()
    after = graphmend("trace", "-q", "-o", "after.json", "--", sys.executable, "train.py")
    assert json.loads((tmp_path / "after.json").read_text())["sites"] == [], after


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("ending", [pytest.param("forked", marks=pytest.mark.slow), "os._exit(0)"])
def test_processes_that_end_without_python_s_leave_tell_of_their_calls(tmp_path: Path, ending: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    calls = "for rows in (3, 5):\n        model(torch.randn(rows, rows + 1))"
    program = f"""

def work():
    model = torch.compile(Model(), backend="eager", dynamic=False).requires_grad_(False)
    {calls}


if __name__ == "__main__":
    if {ending!r} == "forked":
        import multiprocessing

        worker = multiprocessing.get_context("fork").Process(target=work)
        worker.start()
        worker.join()
    else:
        import os

        work()
        os._exit(0)
"""
    (tmp_path / "train.py").write_text(SOLVER + program)
    command = [sys.executable, "-m", "graphmend_codemod", "trace", "--calls", "-q", "--", sys.executable, "train.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    watched = {each.place.function: len(each.calls) for each in document.read(tmp_path / "trace.json").watched}
    assert watched["Model.forward"] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_does_not_tell_of_the_calls_before_it(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("def double(x):\n    return x * 2\n")
    spec = importlib.util.spec_from_file_location("doubling", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    watcher = Watcher({str(path): {"broken": [2], "called": []}})
    watcher.write_to(str(tmp_path))
    watcher.start()
    try:
        module.double(1)
        child = os.fork()
        if not child:
            module.double(2)
            os._exit(0)
        os.waitpid(child, 0)
    finally:
        watcher.stop()
    told = [len(json.loads(file.read_text())["calls"]) for file in tmp_path.glob("*.calls")]
    assert told == [1, 1]
