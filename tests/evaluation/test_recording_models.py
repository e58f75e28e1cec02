"""Models recorded in child processes: what the trace has, and that a bad one costs only itself."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest
import torch

from graphmend_codemod.evaluation.port import RecordedModel
from graphmend_codemod.evaluation.recorder import Recorder
from graphmend_codemod.trace import merged
from graphmend_codemod.trace.document import SourceLine, Statement, Totals, Trace, Watched
from graphmend_evaluation.counting import Call
from graphmend_evaluation.isolation import Policy
from graphmend_evaluation.loading import Factory, Model
from graphmend_evaluation.remembered_rows import RowMemory
from graphmend_evaluation.results import ModelMeasurement, ModelRow, Status
from graphmend_evaluation.tracing.model_runs import as_a_user
from graphmend_evaluation.tracing.recording import record_model

ENVIRONMENT = dict(os.environ)
MODEL = """
    import torch


    @torch.compiler.disable
    def outside(x):
        return x * 2


    class Model(torch.nn.Module):
        def forward(self, x, most=9):
            if x.shape[0] > most:
                raise ValueError("too many rows")
            return outside(x) + 1


    def make():
        return Model(), [(torch.ones(2, 3),), {"x": torch.ones(4, 3), "most": 5}, {"x": torch.ones(7, 3), "most": 6}]
"""


def tree(folder: Path, source: str) -> Path:
    (folder / "zoo").mkdir(parents=True)
    (folder / "zoo" / "model.py").write_text(textwrap.dedent(source))
    (folder / "zoo" / "__init__.py").write_text("")
    return folder


def test_calls_are_recorded_until_one_raises(tmp_path: Path) -> None:
    root = tree(tmp_path / "tree", MODEL)
    recording, trace = record_model(
        root, "zoo.model:make", folder=tmp_path / "out", policy=Policy(environment=ENVIRONMENT)
    )
    assert (recording.message, recording.calls) == ("", 3)  # the first one twice, and the second
    assert trace is not None
    (site,) = trace.sites
    assert (site.place.path, site.place.function) == ("zoo/model.py", "forward")
    (watched,) = trace.watched
    assert watched.place == SourceLine("zoo/model.py", 11, "Model.forward")
    assert len(watched.calls) == 3
    assert trace.command == "zoo.model:make"


@pytest.mark.parametrize(
    ("torch", "told"),
    [
        ("import os; os._exit(3)", "ended with exit code 3 and left no result, while importing"),
        ("import time; time.sleep(60)", "no result after 2 s, while importing"),
    ],
)
def test_a_model_that_cannot_be_recorded_says_why(tmp_path: Path, torch: str, told: str) -> None:
    root = tree(tmp_path / "tree", "")
    (root / "torch.py").write_text(torch)  # which is what the model's code would import
    policy = Policy(timeout=2, environment=ENVIRONMENT)
    recording, trace = record_model(root, "zoo.model:make", folder=tmp_path / "out", policy=policy)
    assert trace is None
    assert told in recording.message
    assert "\n" not in recording.message


def rows_of(*given: Call) -> list[list[int]]:
    """How many rows the tensors of each recorded call have, where these are the calls of the factory."""

    class Made(Factory):
        def make(self) -> Model:
            return Model(torch.nn.Identity(), given, gradients=False)

    _, calls, _ = as_a_user(Made(Path(), "a:b", dict)).function()
    return [[len(each) for each in (*call.args, *(call.kwargs or {}).values())] for call in calls]


def test_the_first_call_is_made_twice_and_once_with_twice_the_rows() -> None:
    two, three = torch.ones(2, 3), torch.ones(3, 3)
    assert rows_of(Call((two,), {"mask": two})) == [[2, 2], [2, 2], [4, 4]]
    assert rows_of(Call((two,)), Call((three,)), Call((two,))) == [[2], [2], [3], [2], [4]]
    assert rows_of(Call((two, three))) == [[2, 3], [2, 3]]  # which of them are rows is not known
    assert rows_of(Call(([two],))) == [[1], [1]]


def watched(place: SourceLine, facts: list[object], *calls: list[dict[str, int]]) -> Watched:
    made = [json.dumps([[number, 0, held] for number, held in enumerate(call, 1)]) for call in calls]
    return Watched(place, (2,), (Statement("key", 2, 2),), tuple(map(json.dumps, facts)), tuple(made), (3,))


def trace_of(*functions: Watched) -> Trace:
    return Trace("0", "zoo:make", True, (), Totals(0, 0, 0, 0, 0, 0, 0.0), (), (), (), (), watched=functions)


def test_runs_of_two_models_are_merged_by_function() -> None:
    place, other = SourceLine("zoo/model.py", 1, "Model.forward"), SourceLine("zoo/model.py", 9, "Other.forward")
    first = watched(place, [["int", 3], ["state", 0, 1, 2]], [{"x": 0, "@owner": 1}])
    second = watched(place, [["state", 0, 1, 2], ["int", 5]], [{"x": 1, "@owner": 0}], [{"x": 1, "@owner": 0}])
    alone = watched(other, [["int", 7]], [{"x": 0}])
    found = {each.place: each for each in merged.merged([trace_of(first), trace_of(second, alone)]).watched}
    assert found[other] == alone
    both = found[place]
    facts = [json.loads(each) for each in both.facts]
    held = [
        [{name: facts[number] for name, number in moment[2].items()} for moment in json.loads(call)]
        for call in both.calls
    ]
    assert [call[0]["x"] for call in held] == [["int", 3], ["int", 5], ["int", 5]]
    one, *rest = [call[0]["@owner"] for call in held]
    assert rest[0] == rest[1]
    assert not set(one[1:]) & set(rest[0][1:])  # no instance of one run is that of another


def test_a_trace_is_known_again_for_the_same_code(tmp_path: Path) -> None:
    memory, trace = RowMemory(tmp_path / "rows", "base"), trace_of()
    memory.write_trace("m:f", {}, trace)
    assert memory.read_trace("m:f", {}) is None  # of a model without a row nobody knows what it imports
    before = ModelMeasurement("m:f", Status.OK, "", 1.5, files=("model.py",))
    changed = {"model.py": b"a = 1", "other.py": b"b = 2"}
    memory.write("m:f", changed, ModelRow("m:f", before, before))
    memory.write_trace("m:f", changed, trace)
    assert memory.read_trace("m:f", {**changed, "other.py": b"b = 3"}) == trace
    assert memory.read_trace("m:f", {**changed, "model.py": b"a = 2"}) is None
    assert RowMemory(tmp_path / "rows", "later").read_trace("m:f", changed) is None
    for file in (tmp_path / "rows").iterdir():
        file.write_text("{")
    assert memory.read_trace("m:f", changed) is None


def test_an_interrupted_run_goes_on_with_the_traces_of_the_same_code(tmp_path: Path) -> None:
    """Nothing runs: there is no such model, and no torch."""
    root = tree(tmp_path / "tree", "")
    (root / "torch.py").write_text("import os; os._exit(3)")
    memory, trace = RowMemory(tmp_path / "rows", "base"), trace_of()
    before = ModelMeasurement("zoo:make", Status.OK, "", 1.5, files=("zoo/model.py",))
    memory.write("zoo:make", {}, ModelRow("zoo:make", before, before))
    memory.write_trace("zoo:make", {}, trace)
    policy = Policy(environment=ENVIRONMENT)

    def recorded(kept: RowMemory | None, *changed: str) -> RecordedModel:
        recorder = Recorder(root, tmp_path / "out", policy=policy, jobs=1, memory=kept, progress=lambda line: None)
        (found,) = recorder.record({"shown": "zoo:make"}, changed)
        return found

    assert recorded(memory) == RecordedModel("shown", trace)
    for found in (recorded(memory, "zoo/model.py"), recorded(None)):  # other code, and `--no-resume`
        assert found.trace is None
        assert "ended with exit code 3" in found.message
