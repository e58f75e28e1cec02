"""The XLA view: what is read from torch_xla's report, what it means, and what is said where torch_xla is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphmend_evaluation.isolation import Policy
from graphmend_evaluation.results import Status, from_json, to_json
from graphmend_evaluation.speed.statistics import difference
from graphmend_evaluation.xla import __main__ as command
from graphmend_evaluation.xla import page
from graphmend_evaluation.xla.correlation import correlation, interval
from graphmend_evaluation.xla.measuring import measure_xla
from graphmend_evaluation.xla.metrics import classify, read_report
from graphmend_evaluation.xla.results import Split, XlaArm, XlaRow, XlaRun

HAS_XLA = importlib.util.find_spec("torch_xla") is not None
# As torch_xla 2.9.0 prints it for a function with `if y.sum() > 0` and `torch.nonzero`.
REPORT = """\
Metric: DeviceLockWait
  TotalSamples: 7
  Accumulator: 013.210us
  ValueRate: 023ms131.610us / second
  Percentiles: 1%=000.220us; 5%=000.220us; 99%=005.350us
Metric: CompileTime
  TotalSamples: 2
  Accumulator: 037ms473.817us
Metric: ExecuteTime
  TotalSamples: 3
  Accumulator: 759.020us
Metric: InboundData
  TotalSamples: 2
  Accumulator: 33.00B
Metric: TransferFromDeviceTime
  TotalSamples: 2
  Accumulator: 139.121us
Counter: CreateXlaTensor
  Value: 8
Counter: UncachedCompile
  Value: 2
Counter: xla::add
  Value: 1
Counter: aten::_local_scalar_dense
  Value: 1
Counter: aten::nonzero
  Value: 1
Counter: MarkStep
  Value: 1
"""
WHOLE = XlaRun("lazy", 0, 0, 1, 1.0, 0.0, 0.0, (), 0.002, 0.1)
COMPILED = XlaRun("openxla", 1, 0, 1, 1.0, 0.0, 0.0, (), 0.001, 0.1)


def test_a_report_is_read() -> None:
    report = read_report(REPORT)
    assert (report.compilations, report.executions, report.transfers, report.host_reads) == (2, 3, 2, 1)
    assert report.fallbacks == {"aten::nonzero": 1}
    assert report.counters["UncachedCompile"] == 2


@pytest.mark.parametrize("text", ["", "nothing of a report\n  Value: 3\n", "Counter: aten::nonzero\n  Value: many\n"])
def test_what_is_no_report_counts_nothing(text: str) -> None:
    report = read_report(text)
    assert (report.compilations, report.executions, report.host_reads, report.fallbacks) == (0, 0, 0, {})


def test_one_graph_both_ways_is_one_graph() -> None:
    assert classify(COMPILED, WHOLE) == ((), "one graph")
    assert classify(replace(COMPILED, fx_graphs=3), WHOLE) == ((), "one graph for each of 3 shapes")


def test_a_break_that_lazy_tracing_does_not_have_is_dynamos() -> None:
    splits, words = classify(replace(COMPILED, fx_graphs=3, break_events=2, executions=3.0), WHOLE)
    assert splits == (Split.DYNAMO,)
    assert words == "split in Dynamo only: 3 FX graphs, but lazy tracing runs one HLO graph a call"


def test_a_value_that_python_needs_is_a_host_read_both_ways() -> None:
    splits, words = classify(
        replace(COMPILED, fx_graphs=2, break_events=1, executions=2.0, transfers=1.0, host_reads=1.0),
        replace(WHOLE, executions=2.0, transfers=1.0, host_reads=1.0),
    )
    assert splits == (Split.HOST_READ,)
    assert words == "a real host read: 1 time a call the host waits for a value"


def test_a_copy_of_whole_tensors_is_a_host_read_too() -> None:
    splits, words = classify(replace(COMPILED, transfers=2.0), replace(WHOLE, transfers=2.0))
    assert splits == (Split.HOST_READ,)
    assert words == "a real host read: 2 times a call values are copied to the host"


def test_an_operation_without_a_lowering_is_named() -> None:
    fallen: dict[str, Any] = {"executions": 2.0, "transfers": 1.0, "fallbacks": (("aten::nonzero", 2.0),)}
    splits, words = classify(replace(COMPILED, **fallen), replace(WHOLE, **fallen))
    assert splits == (Split.LOWERING,)
    assert words == "a split in lowering: no lowering for aten::nonzero 2 times"


def test_several_causes_are_all_named() -> None:
    causes: dict[str, Any] = {"host_reads": 1.0, "fallbacks": (("aten::nonzero", 1.0),)}
    splits, words = classify(
        replace(COMPILED, fx_graphs=5, break_events=4, executions=9.0, **causes),
        replace(WHOLE, executions=3.0, **causes),
    )
    assert splits == (Split.HOST_READ, Split.LOWERING, Split.DYNAMO)
    assert "beside that: 9 executions a call compiled, 3 with lazy tracing" in words


def test_a_read_that_only_the_eager_path_still_has_is_told_apart() -> None:
    splits, words = classify(COMPILED, replace(WHOLE, executions=2.0, transfers=1.0, host_reads=1.0))
    assert splits == ()
    assert words == (
        "one graph. Without torch.compile lazy tracing still has a real host read: 1 time a call the host waits for a "
        "value"
    )


def test_ranks_that_agree_correlate_fully() -> None:
    found = correlation("a, and b", [1, 2, 3, 4, 5], [10, 20, 30, 50, 40])
    assert found.rho == pytest.approx(0.9)
    assert found.p == pytest.approx(10 / 120)
    assert "n=5" in found.words
    assert "no relation shown" in found.words
    assert "only a strong relation could show" in found.words


def test_ties_share_their_rank() -> None:
    # By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert correlation("a, and b", [1, 2, 2, 3], [1, 2, 3, 4]).rho == pytest.approx(0.9486833)


def test_many_models_that_disagree_are_told_so() -> None:
    found = correlation("a, and b", list(range(20)), [-number for number in range(20)])
    assert found.rho == pytest.approx(-1.0)
    assert found.p is not None
    assert found.p < 0.001
    assert "more goes with less" in found.words


def test_the_interval_of_a_correlation_narrows_with_more_models() -> None:
    # By hand: atanh(0.5) = 0.5493, and 1.96 * sqrt(1.125 / 21) = 0.4537.
    assert interval(0.5, 24) == pytest.approx((0.0954, 0.7633), abs=1e-3)
    assert interval(0.5, 4) is None
    few, many = interval(0.5, 6), interval(0.5, 60)
    assert few is not None
    assert many is not None
    assert few[0] < 0 < many[0]
    assert "(95 %: " in correlation("a, and b", list(range(12)), [0, 2, 1, 3, 5, 4, 6, 8, 7, 9, 11, 10]).words


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [([1.0, 2.0], [1.0, 2.0], "fewer than three models"), ([1.0] * 4, [1.0, 2.0, 3.0, 4.0], "the same for all models")],
)
def test_where_there_is_no_correlation_it_is_said(first: list[float], second: list[float], why: str) -> None:
    found = correlation("a, and b", first, second)
    assert (found.rho, found.p) == (None, None)
    assert why in found.words


def row() -> XlaRow:
    broken = replace(COMPILED, fx_graphs=2, break_events=1, executions=2.0)
    splits, words = classify(broken, WHOLE)
    before = XlaArm(Status.OK, "", broken, WHOLE, splits, words)
    after = XlaArm(Status.OK, "", COMPILED, WHOLE, (), "one graph")
    versions = (("torch", "2.9.1"), ("torch_xla", "2.9.0"))
    faster = difference([1.0, 1.1, 1.0, 1.1, 1.0, 1.1], [0.5, 0.52, 0.5, 0.52, 0.5, 0.52])
    same = difference([1.0, 1.1, 1.0, 1.1, 1.0, 1.1], [1.1, 1.0, 1.1, 1.0, 1.1, 1.0])
    return XlaRow("package.models:scale", before, after, versions, "CPU", "2026-11-21T05:25Z", faster, same)


def test_a_row_travels_as_json() -> None:
    assert from_json(XlaRow, json.loads(json.dumps(to_json(row())))) == row()


def test_the_page_has_a_line_for_each_arm_and_the_number_of_models() -> None:
    failed = XlaArm(Status.TIMEOUT, "lazy: no result after 600 s")
    text = page.markdown([row(), replace(row(), after=failed)], "a machine")
    assert "| scale | before | 1 | 2 | 1 / 1 | 2 / 1 | 0 / 0 | split in Dynamo only: 2 FX graphs" in text
    assert "| scale | after | 0 | 1 | 1 / 1 | 1 / 1 | 0 / 0 | one graph |" in text
    assert "| scale | 1 ms ±10 % | 1 ms ±10 % | -51 % (" in text
    assert "| 2 ms ±10 % | 2 ms ±10 % | no difference |" in text
    assert "lazy: no result after 600 s" in text
    assert "not defined for n=1" in text
    assert "torch_xla 2.9.0, PJRT device CPU; a machine." in text
    assert "package.models:scale, after: one graph" in list(page.lines([row()]))


@pytest.mark.skipif(HAS_XLA, reason="torch_xla is installed")
def test_a_missing_torch_xla_is_one_line_that_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--base", str(tmp_path), "--head", str(tmp_path), "--model", "m:f", "--python", sys.executable]
    assert command.main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("xla: torch_xla is not installed for ")
    assert "pip install 'graphmend[xla]'" in said
    assert said.count("\n") == 1


def test_an_interpreter_that_does_not_exist_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = tmp_path / "python"
    arguments = ["--base", str(tmp_path), "--head", str(tmp_path), "--model", "m:f", "--python", str(python)]
    assert command.main(arguments) == 2
    assert capsys.readouterr().err == f"xla: {python} cannot be started: No such file or directory\n"


@pytest.mark.skipif(not HAS_XLA and "GRAPHMEND_XLA_PYTHON" not in os.environ, reason="needs torch_xla")
def test_a_tiny_model_is_split_by_dynamo_before_and_whole_after(tmp_path: Path) -> None:
    source = """
        import torch


        class Scale(torch.nn.Module):
            def forward(self, x):
                x = x * 2
                print("between")
                return x.softmax(-1)


        def scale():
            return Scale(), (torch.rand(2, 4),)
    """
    for name, text in (("before", source), ("after", source.replace('print("between")', "pass"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "measured.py").write_text(textwrap.dedent(text))
    found = measure_xla(
        tmp_path / "before",
        tmp_path / "after",
        "measured:scale",
        folder=tmp_path / "out",
        policy=Policy(),
        python=Path(os.environ.get("GRAPHMEND_XLA_PYTHON", sys.executable)),
    )
    assert found.before.ok, found.before.message
    assert found.before.splits == (Split.DYNAMO,)
    assert found.after.words == "one graph"
    assert found.before.openxla is not None
    assert (found.before.openxla.fx_graphs, found.before.openxla.executions) == (2, 2.0)
