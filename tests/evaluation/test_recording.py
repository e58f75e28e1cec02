"""Record what a repository's own tests call, and measure it: tiny real repositories, real pytest runs."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from graphmend_evaluation.isolation import Policy, measure_model
from graphmend_evaluation.names import RecordedModel, parse
from graphmend_evaluation.sources import Recorded, record_from_tests

ENVIRONMENT = {**os.environ, "PYTEST_ADDOPTS": ""}
POLICY = Policy(timeout=120, environment=ENVIRONMENT)
LAYERS = """
    import torch


    class Scale(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x * self.factor


    class Block(torch.nn.Module):
        def __init__(self, width, *, sizes):
            super().__init__()
            self.linear = torch.nn.Linear(width, width)
            self.scale = Scale(sizes["factor"])

        def forward(self, x, shift=0.0):
            if x.sum() > 0:
                x = x + shift
            return self.scale(self.linear(x))


    class Picky(torch.nn.Module):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def forward(self, x):
            return self.function(x)
"""
OTHER = """
    import torch

    from tiny.layers import Block


    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block(4, sizes={"factor": 2.0})

        def forward(self, x):
            return self.block(x)
"""
CASES = """
    import pytest
    import torch

    from tiny.layers import Block, Picky
    from tiny.other import Outer


    @pytest.mark.parametrize("rows", [1, 2, 2, 3, 4])
    def test_block_in_evaluation(rows):
        block = Block(4, sizes={"factor": 3.0}).eval()
        with torch.no_grad():
            assert block(torch.ones(rows, 4), shift=0.5).shape == (rows, 4)


    def test_block_learns():
        block = Block(4, sizes={"factor": 3.0}).double()
        block(torch.ones(2, 4, dtype=torch.float64)).sum().backward()


    def test_outer():
        Outer()(torch.ones(2, 4))


    def test_picky():
        assert Picky(lambda x: x)(1) == 1
"""
CRASHES = """
    import os

    import torch

    from tiny.layers import Block


    def test_block():
        Block(4, sizes={"factor": 1.0})(torch.ones(1, 4))


    def test_crash():
        os._exit(7)
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("recording") / "repository"
    write(root, "src/tiny/__init__.py", "")
    write(root, "src/tiny/layers.py", LAYERS)
    write(root, "src/tiny/other.py", OTHER)
    write(root, "tests/test_layers.py", CASES)
    write(root, "crashes/test_crash.py", CRASHES)
    return root.resolve()


@pytest.fixture(scope="module")
def recorded(repository: Path) -> Recorded:
    return record(repository, repository.parent / "out", "tests", ["src/tiny/layers.py"])


def test_each_way_of_making_and_calling_a_touched_class_becomes_a_model(recorded: Recorded) -> None:
    entries = [entry(name) for name in recorded.models]
    assert [(each["class"], each["train"], each["gradients"], each["calls"]) for each in entries] == [
        ("tiny.layers:Block", False, False, 3),
        ("tiny.layers:Block", True, True, 1),
        ("tiny.layers:Block", True, True, 1),
    ]


def test_what_an_outer_module_calls_is_covered_by_it(repository: Path, tmp_path: Path) -> None:
    recorded = record(repository, tmp_path, "tests", ["src/tiny/layers.py", "src/tiny/other.py"])

    assert {entry(name)["class"] for name in recorded.models} == {"tiny.layers:Block", "tiny.other:Outer"}


def test_a_class_that_cannot_be_recorded_is_told_with_the_reason(recorded: Recorded) -> None:
    remark = next(each for each in recorded.remarks if "Picky" in each)
    assert "tiny.layers:Picky was not recorded: its constructor's arguments cannot be pickled" in remark


@pytest.mark.slow
def test_a_recorded_model_is_measured_with_the_code_of_another_worktree(
    repository: Path, recorded: Recorded, tmp_path: Path
) -> None:
    head = tmp_path / "head"
    fixed = textwrap.dedent(LAYERS).replace(
        "        if x.sum() > 0:\n            x = x + shift\n", "        x = torch.where(x.sum() > 0, x + shift, x)\n"
    )
    write(head, "src/tiny/__init__.py", "")
    write(head, "src/tiny/layers.py", fixed)
    write(head, "src/tiny/other.py", OTHER)

    before = measure_model(repository, recorded.models[0], folder=tmp_path / "before", policy=POLICY)
    after = measure_model(
        head, recorded.models[0], folder=tmp_path / "after", against=tmp_path / "before", policy=POLICY
    )

    assert before.counts is not None, before.message
    assert after.counts is not None, after.message
    assert (before.counts.break_events, after.counts.break_events) == (1, 0)
    assert len(after.calls) == 3
    assert after.against_base is not None
    assert after.against_base.identical


def test_gradients_and_dtype_of_a_training_call_are_kept(repository: Path, recorded: Recorded, tmp_path: Path) -> None:
    measured = measure_model(repository, recorded.models[1], folder=tmp_path / "arm", policy=POLICY)

    assert measured.ok, measured.message
    assert measured.calls[0].eager_error is None
    import torch

    eager = torch.load(tmp_path / "arm" / "eager.pt", weights_only=True)
    assert eager[0]["result"]["tensors"]["gradient of linear.weight"].dtype is torch.float64


def test_a_crash_of_the_tests_costs_only_what_comes_after_it(repository: Path, tmp_path: Path) -> None:
    recorded = record(repository, tmp_path, "crashes", ["src/tiny/layers.py"])

    assert [entry(name)["calls"] for name in recorded.models] == [1]
    assert any("exit code 7" in remark for remark in recorded.remarks)


def test_tests_that_take_too_long_are_ended(repository: Path, tmp_path: Path) -> None:
    recorded = record_from_tests(
        repository, "tests", ["src/tiny/layers.py"], folder=tmp_path, policy=Policy(0.5, environment=ENVIRONMENT)
    )

    assert recorded.models == ()
    assert any("no result after 0.5 s" in remark for remark in recorded.remarks)


def test_arguments_that_pytest_does_not_take_are_told(repository: Path, tmp_path: Path) -> None:
    recorded = record_from_tests(
        repository, "--no-such-option", ["src/tiny/layers.py"], folder=tmp_path / "out", policy=POLICY
    )

    assert recorded.models == ()
    assert any("pytest was called with arguments that it does not take" in remark for remark in recorded.remarks)


def test_arguments_with_an_open_quote_are_told(repository: Path, tmp_path: Path) -> None:
    recorded = record_from_tests(repository, "-k 'open", [], folder=tmp_path / "out", policy=POLICY)

    assert recorded == Recorded((), ('--from-tests "-k \'open" cannot be split into arguments: No closing quotation',))


def record(repository: Path, folder: Path, tests: str, changed: list[str]) -> Recorded:
    return record_from_tests(repository, f"-p no:cacheprovider {tests}", changed, folder=folder, policy=POLICY)


def entry(name: str) -> dict[str, object]:
    parsed = parse(name)
    assert isinstance(parsed, RecordedModel)
    found: dict[str, object] = json.loads(parsed.path.read_text(encoding="utf-8"))["models"][parsed.number]
    return found


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
