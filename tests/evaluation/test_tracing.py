"""Real programs under `graphmend trace`: what they do is recorded, and they do not notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import torch
from torch import nn

from graphmend_codemod.trace import document
from graphmend_codemod.trace.document import Trace
from graphmend_evaluation.counting import Call, count_breaks
from tests.evaluation import counted_models, traced_models

CHECKOUT = Path(__file__).parent.parent.parent
PLUGIN = (
    [] if entry_points(group="pytest11", name="graphmend") else ["-p", "graphmend_evaluation.tracing.pytest_plugin"]
)

MODEL = """\
import torch
from torch import nn


def helper(x):
    if x.sum() > 0:
        return x * 2
    return x


class Model(nn.Module):
    def forward(self, x):
        y = helper(x + 1)
        print("got", y.shape[0])
        return y - 1


def made():
    return Model(), (torch.ones(2),)
"""
TRAIN = """\
import subprocess
import sys

import torch
from model import Model

compiled = torch.compile(Model(), backend="eager")
for rows in (2, 3, 3):
    compiled(torch.ones(rows))
if "child" not in sys.argv:
    subprocess.run([sys.executable, "train.py", "child"], check=False, stdout=subprocess.DEVNULL)
print("modules of graphmend:", [name for name in sys.modules if name.startswith("graphmend")])
raise SystemExit(3) if "child" in sys.argv else ValueError("the learning rate is gone")
"""
WAIT = """\
import time

import torch
from model import Model

Model()(torch.ones(2))
print("ready", flush=True)
time.sleep(60)
"""
TESTS = """\
import pytest
import torch

from graphmend_evaluation import assert_no_graph_breaks
from model import Model, helper


def test_whole():
    assert_no_graph_breaks(torch.nn.Linear(2, 2), torch.ones(2))


def test_broken():
    with pytest.raises(AssertionError, match="3 graph breaks at 2 sites"):
        assert_no_graph_breaks(Model(), torch.ones(2))


@pytest.mark.no_graph_breaks
def test_marked():
    torch.compile(helper, backend="eager")(torch.ones(2))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("project")
    texts = {"pyproject.toml": "[tool.graphmend]\n", "model.py": MODEL, "train.py": TRAIN, "wait.py": WAIT}
    for name, text in texts.items():
        (made / name).write_text(text)
    (made / "test_model.py").write_text(TESTS)
    (made / "theirs").mkdir()
    (made / "theirs/sitecustomize.py").write_text("print('their own start')\n")
    return made


def environment(folder: Path) -> dict[str, str]:
    paths = [str(CHECKOUT), str(CHECKOUT / "evaluation"), str(folder / "theirs")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def graphmend(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graphmend_codemod", "trace", "--no-cache", *arguments],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    """A program that starts another one like itself, and ends with an exception."""
    return graphmend(folder, "-o", "train.json", "--", sys.executable, "train.py")


@pytest.fixture(scope="module")
def found(folder: Path, done: subprocess.CompletedProcess[str]) -> Trace:
    return document.read(folder / "train.json")


def test_time_between_graphs_is_recorded_where_the_program_calls_more_than_once(found: Trace) -> None:
    assert found.totals.gap_seconds > 0
    assert all(site.gaps and site.gap_seconds > 0 for site in found.sites if site.graphs)


def test_time_between_two_calls_is_no_gap_though_a_break_made_their_first_graph_necessary() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded:
        compiled = torch.compile(traced_models.BranchBeforeAnyGraph(), backend="eager")
        for _ in range(4):
            compiled(torch.ones(3))
            time.sleep(0.5)
    torch.compiler.reset()
    (site,) = recorded.result.sites
    assert site.gaps
    assert site.gap_seconds < 0.5


def test_exception_ends_the_program_as_ever_and_leaves_the_trace(
    done: subprocess.CompletedProcess[str], found: Trace
) -> None:
    assert done.returncode == 1
    assert "ValueError: the learning rate is gone" in done.stderr
    assert "note: the program ended with exit code 1" in done.stderr
    assert found.totals.sites == 2


def test_each_site_is_there_once_with_line_column_and_kind(found: Trace) -> None:
    sites = {(site.place.path, site.place.line, site.gb_id): site for site in found.sites}
    assert set(sites) == {("model.py", 6, "GB0170"), ("model.py", 14, "GB0059")}
    branch = sites["model.py", 6, "GB0170"]
    assert (branch.column, branch.end_column) == (8, 19)
    assert [(caller.path, caller.line) for caller in branch.callers] == [("model.py", 13)]


def test_child_process_is_recorded_as_well(found: Trace) -> None:
    assert [process.program for process in found.processes] == ["train.py", "train.py"]
    assert {site.processes for site in found.sites} == {2}
    assert all(process.finished for process in found.processes)


def test_recompilation_is_told_in_words(found: Trace) -> None:
    words = [reason.words for each in found.recompiled for reason in each.reasons]
    assert any(each.startswith("size 0 of `x` changed from 2 to 3") for each in words)


def test_locals_at_the_break_are_known(found: Trace) -> None:
    (branch,) = [site for site in found.sites if site.gb_id == "GB0170"]
    (fact,) = branch.facts
    assert (fact.name, fact.type, fact.dtype, fact.sizes) == ("x", "torch.Tensor", "float32", (2,))
    assert not fact.always_same


def test_program_sees_its_own_start_and_nothing_of_graphmend(done: subprocess.CompletedProcess[str]) -> None:
    assert done.stdout.startswith("their own start\n")
    assert "modules of graphmend: []" in done.stdout


def test_output_tells_of_sites_while_the_program_runs_and_of_all_behind(done: subprocess.CompletedProcess[str]) -> None:
    assert "note: graph break 1: model.py:6: Data-dependent branching" in done.stderr
    assert "model.py:6:8: GB0170 Data-dependent branching" in done.stdout
    assert done.stdout.rstrip().endswith("Trace: train.json")


@pytest.mark.parametrize(
    "cls",
    [
        counted_models.TensorIfInHelper,
        counted_models.PrintOneDeep,
        counted_models.ItemInTry,
        traced_models.MakesModulesInLoop,
    ],
)
def test_trace_lists_the_strict_counter_s_events_one_by_one(cls: type[nn.Module]) -> None:
    from graphmend_evaluation import trace

    counts = count_breaks(lambda: cls().eval(), [Call((torch.ones(3),))], root=counted_models.ROOT)
    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded, torch._dynamo.config.patch(suppress_errors=False):
        torch.compile(cls().eval(), backend="eager", dynamic=False)(torch.ones(3))
    torch.compiler.reset()
    sites = sorted((site.shown.path, site.shown.line, site.kind, site.events) for site in recorded.result.sites)
    assert sites == [(site.path, site.line, site.kind, site.events) for site in counts.sites]
    assert recorded.result.totals.graphs == counts.graphs
    assert recorded.result.totals.skipped == len(counts.skipped_frames)


def test_locals_are_known_where_the_outermost_function_branches() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded:
        torch.compile(traced_models.halved, backend="eager")(torch.ones(3), 2)
    torch.compiler.reset()
    (site,) = recorded.result.sites
    assert [(fact.name, fact.type, fact.sizes) for fact in site.facts] == [
        ("x", "torch.Tensor", (3,)),
        ("times", "int", None),
    ]


def test_local_that_a_nested_function_reads_is_known_by_what_it_holds() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded:
        torch.compile(traced_models.shared_with_a_closure, backend="eager")(torch.ones(3))
    torch.compiler.reset()
    (site,) = recorded.result.sites
    assert {fact.name: fact.type for fact in site.facts} == {"x": "torch.Tensor", "doubled": "torch.Tensor"}


def test_locals_of_callers_are_known() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded:
        torch.compile(counted_models.TensorIfInHelper().eval(), backend="eager")(torch.ones(3))
    torch.compiler.reset()
    result = recorded.result
    assert {each.place.function for each in result.known} == {"forward"}
    names = {fact.name: fact.type for each in result.known for fact in each.facts}
    assert names["x"] == "torch.Tensor"
    assert all(fact.name != "args" for site in result.sites for fact in site.facts)


def test_caller_that_torch_leaves_out_is_there_with_its_locals_and_what_it_costs() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    with trace(root=counted_models.ROOT) as recorded:
        torch.compile(traced_models.BranchInInnerForward(), backend="eager")(torch.ones(3))
    torch.compiler.reset()
    (site,) = recorded.result.sites
    (caller,) = site.callers
    source = Path(traced_models.__file__).read_text().splitlines()
    assert source[caller.line - 1].strip() == "x = self.inner(x * scale)"
    assert {fact.name for each in recorded.result.known if each.place == caller for fact in each.facts} >= {
        "x",
        "scale",
    }
    assert [each.because for each in recorded.result.compilations] == [None, site.id, site.id, site.id]


def test_error_of_fullgraph_is_a_site() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    model = torch.compile(traced_models.BranchInInnerForward(), backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported), trace(root=counted_models.ROOT) as recorded:
        model(torch.ones(3))
    torch.compiler.reset()
    (site,) = recorded.result.sites
    assert (site.gb_id, site.kind) == ("GB0170", "Data-dependent branching")
    assert (site.source.strip(), site.place.function) == ("if x.mean() > 0.5:", "forward")
    assert (site.events, recorded.result.totals.skipped) == (1, 0)


def test_an_operator_that_dynamo_cannot_run_is_a_site() -> None:
    from graphmend_evaluation import trace

    torch.compiler.reset()
    model = torch.compile(traced_models.UnpackedIndices(), backend="eager")
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError), trace(root=counted_models.ROOT) as recorded:
        model(torch.ones(3, 4), torch.tensor([[0, 1], [2, 2]]))
    torch.compiler.reset()
    (site,) = recorded.result.sites
    assert site.kind.startswith("TorchRuntimeError")
    assert (site.source.strip(), site.place.function) == ("x[rows, columns] = 0.0", "forward")
    assert (site.events, recorded.result.totals.skipped) == (1, 0)


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_ctrl_c_leaves_the_trace_of_a_program_that_never_compiles(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "graphmend_codemod",
        "trace",
        "-q",
        "-o",
        "wait.json",
        "--compile",
        "auto",
        "wait.py",
    ]
    child = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line == "ready\n":
            break
    time.sleep(0.1)
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(300) == 128 + signal.SIGINT
    child.stdout.close()
    found = document.read(folder / "wait.json")
    assert {site.gb_id for site in found.sites} == {"GB0170", "GB0059"}
    assert [process.program for process in found.processes] == ["wait.py"]


def test_pytest_records_and_fails_marked_tests(folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-q", "-p", "no:cacheprovider", "--graphmend-trace=tests.json", "."],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "1 failed, 2 passed" in run.stdout
    assert "model.py:6 in helper: GB0170 Data-dependent branching" in run.stdout
    assert "torch.__trace" not in run.stdout  # pytest shows logs under a test that fails
    assert "graphmend: trace in tests.json" in run.stdout
    assert json.loads((folder / "tests.json").read_text())["totals"]["sites"] == 2


@pytest.mark.slow
def test_workers_of_pytest_are_in_one_trace(folder: Path) -> None:
    pytest.importorskip("xdist")
    options = [*PLUGIN, "-q", "-n", "2", "-p", "no:cacheprovider", "--graphmend-trace=workers.json"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "evaluation")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "1 failed, 2 passed" in run.stdout
    found = document.read(folder / "workers.json")
    assert found.totals.sites == 2
    assert all(process.finished for process in found.processes)
    assert list(folder.glob("workers*.json")) == [folder / "workers.json"]


def test_file_of_tests_behind_the_option_is_not_overwritten(folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "--graphmend-trace", "test_model.py"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert "--graphmend-trace test_model.py: not a .json file" in run.stderr
    assert (folder / "test_model.py").read_text() == TESTS
