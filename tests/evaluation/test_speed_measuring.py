"""Speed of a tiny model, before and after, in real child processes; and what failing ones cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from graphmend_evaluation.isolation import Policy
from graphmend_evaluation.results import Status, from_json, to_json
from graphmend_evaluation.speed import __main__ as command
from graphmend_evaluation.speed import page
from graphmend_evaluation.speed.gpu import Gpu, gpu_as_found, read_query
from graphmend_evaluation.speed.measuring import measure_speed
from graphmend_evaluation.speed.options import SpeedOptions
from graphmend_evaluation.speed.processes import MeasureError, Partner, ask_once
from graphmend_evaluation.speed.results import ProfileCounts, SpeedMachine, SpeedRow, SpeedVerdict
from graphmend_evaluation.speed.together import cold_result, steady_result
from graphmend_evaluation.speed.turns import Turns

AFTER = """
    import os

    import torch


    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            x = self.linear(x).relu()
            if x.shape[0] > 2:
                raise ValueError("too many")
            return x * 2


    class Deadly(Scale):
        calls = 0

        def forward(self, x):
            Deadly.calls += 1
            if Deadly.calls > 3:
                os._exit(3)
            return super().forward(x)


    def scale():
        return Scale(), [(torch.rand(2, 4),), (torch.rand(3, 4),)]


    def deadly():
        return Deadly(), scale()[1]


    def never():
        return Scale(), (torch.rand(3, 4),)
"""
BEFORE = AFTER.replace(".relu()\n", '.relu()\n            print("between")\n')
CHILD = "graphmend_evaluation.speed.child"
SMALL = SpeedOptions(device="cpu", backend="aot_eager", cold=1, rounds=6, block_s=0.001, processes=1)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A base with a break, and a head without."""
    made = []
    for name, source in (("before", BEFORE), ("after", AFTER)):
        folder = tmp_path_factory.mktemp(name)
        (folder / "measured.py").write_text(textwrap.dedent(source))
        made.append(folder)
    return made[0], made[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the processes of `row` wrote."""
    return tmp_path_factory.mktemp("speed")


@pytest.fixture(scope="module")
def row(trees: tuple[Path, Path], folder: Path) -> SpeedRow:
    """The model measured once, for all tests that look at it."""
    return measure_speed(*trees, "measured:scale", folder=folder, options=SMALL)


def test_both_arms_are_timed_cold_and_steady(row: SpeedRow) -> None:
    assert (row.status, row.message) == (Status.OK, "")
    assert row.cold is not None
    assert [call.number for call in row.cold.calls] == [1, 2, 3, 4]
    first = row.cold.calls[0]
    assert first.wall_s.before.median > first.run_wall_s.before.median > 0
    assert first.cpu_s.before.median > row.cold.calls[3].cpu_s.before.median
    assert [steady.configuration for steady in row.steady] == ["eager", "aot_eager"]
    assert all(len(steady.blocks_before_s) == len(steady.blocks_after_s) == 6 for steady in row.steady)
    assert all(steady.calls_per_s_after > 0 for steady in row.steady)


def test_the_compiler_is_started_once_for_all_models(trees: tuple[Path, Path], row: SpeedRow, folder: Path) -> None:
    assert row.ok
    said: list[str] = []
    options = replace(SMALL, cold=0, rounds=0)
    found = measure_speed(
        *trees, "measured:scale", folder=folder / "next", options=options, seed=folder / "seed", progress=said.append
    )
    assert (found.status, found.backend) == (Status.OK, row.backend)
    assert said == ["running it once in eager mode"]


def test_one_repetition_gives_no_verdict(row: SpeedRow) -> None:
    assert row.cold is not None
    assert row.cold.total.wall_s.difference.verdict is SpeedVerdict.TOO_FEW


def test_the_break_shows_in_compilations_and_in_entries_of_compiled_regions(row: SpeedRow) -> None:
    assert row.cold is not None
    assert (row.cold.compilations_before, row.cold.compilations_after) == (2, 1)
    counts = {steady.configuration: (steady.profile_before, steady.profile_after) for steady in row.steady}
    assert counts["aot_eager"] == (ProfileCounts(2.0), ProfileCounts(1.0))
    assert counts["eager"] == (ProfileCounts(0.0), ProfileCounts(0.0))


def test_a_call_that_raises_in_eager_mode_is_left_out_and_told(row: SpeedRow) -> None:
    assert row.remarks[0] == "call 2 raises ValueError: too many: left out"


def test_one_process_an_arm_is_remarked(row: SpeedRow) -> None:
    assert any(line.startswith("one process an arm") for line in row.remarks)


def test_machine_versions_date_and_load_are_told(row: SpeedRow) -> None:
    assert row.machine is not None
    assert row.machine.processor
    assert len(row.machine.load) == 2
    assert {"python", "torch"} <= {name for name, _ in row.versions}
    assert row.date.endswith("Z")
    assert row.device == "cpu"


def test_a_row_travels_as_json(row: SpeedRow) -> None:
    assert from_json(SpeedRow, json.loads(json.dumps(to_json(row)))) == row


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are only told where the system forgets them on request")
def test_memory_is_told(row: SpeedRow) -> None:
    assert all((steady.peak_bytes_before or 0) > 2**20 for steady in row.steady)


def test_the_page_says_what_has_not_run_on_a_gpu_and_prints_noise_beside_numbers(row: SpeedRow) -> None:
    text = page.markdown([row])
    assert "Nothing on this page has run on a GPU" in text
    assert "load average" in text
    assert "| scale | aot_eager |" in text
    assert " ±" in text
    assert "too few repetitions to tell" in text
    assert any("left out" in line for line in page.lines([row]))


def test_a_hanging_process_is_stopped_at_the_time_limit(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(600)\n")
    arguments = ["probe", "--root", str(tmp_path), "--model", "measured:scale"]
    with pytest.raises(MeasureError, match="no result after 2 s, while") as raised:
        ask_once(CHILD, arguments, worktree=tmp_path, folder=tmp_path, policy=Policy(timeout=2))
    assert raised.value.status is Status.TIMEOUT


def test_a_partner_that_does_not_answer_is_stopped_at_the_time_limit(tmp_path: Path) -> None:
    (tmp_path / "measured.py").write_text("import torch\n")
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(600)\n")
    arguments = ["steady", "--root", str(tmp_path), "--model", "measured:scale"]
    partner = Partner(arguments, worktree=tmp_path, folder=tmp_path, policy=Policy(timeout=2))
    with partner, pytest.raises(MeasureError, match="no answer after 2 s, while") as raised:
        partner.ask("eager", "warm_up")
    assert raised.value.status is Status.TIMEOUT


def test_a_process_that_dies_in_the_steady_state_is_told_with_what_it_did(
    trees: tuple[Path, Path], row: SpeedRow, folder: Path, tmp_path: Path
) -> None:
    assert row.ok  # its weights and inputs are there
    arguments = ["steady", "--root", str(trees[1]), "--model", "measured:deadly"]
    arguments += ["--pins", str(folder / "probe"), "--calls", "0", "--device", "cpu"]
    partner = Partner(arguments, worktree=trees[1], folder=tmp_path, policy=Policy())
    with partner, pytest.raises(MeasureError, match="ended with exit code 3 and left no result, while w") as raised:
        partner.ask("eager", "warm_up")
    assert raised.value.status is Status.CRASHED


def test_a_gpu_that_is_not_there_is_one_clear_line(trees: tuple[Path, Path], tmp_path: Path) -> None:
    # The child sees none, whatever this machine has.
    policy = Policy(environment={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    options = replace(SMALL, device="cuda")
    found = measure_speed(*trees, "measured:scale", folder=tmp_path, options=options, policy=policy)
    assert found.status is Status.FAILED
    assert "torch finds no CUDA device here" in found.message


@pytest.mark.slow
def test_a_model_that_never_returns_is_told_by_the_command_and_on_the_page(
    trees: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    arguments = ["--base", str(trees[0]), "--head", str(trees[1]), "--model", "measured:never", "--device", "cpu"]
    arguments += ["--backend", "aot_eager", "--results", str(results)]
    assert command.main(arguments) == 1
    problem = "the model raises in eager mode: call 1 raises ValueError: too many"
    assert problem in capsys.readouterr().out
    written = {path.suffix: path.read_text() for path in results.iterdir()}
    assert set(written) == {".md", ".json"}
    assert problem in written[".md"]
    assert json.loads(written[".json"])["rows"][0]["status"] == "failed"


def test_the_command_takes_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    arguments = ["--repository", str(tmp_path), "--base", "main~1", "--head", "main", "--model", "measured:scale"]
    assert command.main(arguments) == 2
    assert "main~1 is neither a folder nor a commit" in capsys.readouterr().err


def test_the_backend_eager_is_refused(trees: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--base", str(trees[0]), "--head", str(trees[1]), "--model", "m:f", "--backend", "eager"]
    assert command.main(arguments) == 2
    assert "compiles nothing" in capsys.readouterr().err


def test_compilation_is_subtracted_from_the_whole() -> None:
    def answer(wall: float, compiling: float) -> dict[str, object]:
        call = {"wall": wall, "cpu": wall, "compile": [compiling, compiling]}
        return {"calls": [call] * 4, "compilations": 3, "peak_bytes": None}

    found = cold_result([answer(10.0, 9.0)] * 4, [answer(5.0, 4.5)] * 4)
    assert found.total.wall_s.difference.verdict is SpeedVerdict.LESS
    assert found.calls[0].run_wall_s.before.median == 1.0
    assert found.total.run_wall_s.after.median == 2.0
    assert found.peak_bytes is None


def test_two_processes_of_one_arm_that_differ_drown_a_small_change() -> None:
    def process(seconds: float) -> list[dict[str, object]]:
        return [{"seconds": [seconds] * 3, "calls_per_s": 1 / seconds}] * 10

    nothing = [None, None]
    alike = steady_result("eager", [process(1.0)] * 2, [process(0.95)] * 2, nothing, nothing)
    assert alike.latency_s.difference.verdict is SpeedVerdict.LESS
    unlike = steady_result("eager", [process(1.0), process(1.1)], [process(1.0)] * 2, nothing, nothing)
    assert unlike.latency_s.difference.verdict is SpeedVerdict.NO_DIFFERENCE


def test_the_answer_of_the_drivers_tool_is_read() -> None:
    assert read_query("NVIDIA A40, 550.54.15, 1740 MHz, 7251 MHz\n") == Gpu(
        "NVIDIA A40", "550.54.15", "graphics 1740 MHz, memory 7251 MHz"
    )
    assert read_query("No devices were found\n") == Gpu()


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_the_drivers_tool_is_asked_about_one_gpu_and_sets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho "NVIDIA A40, 550.54.15, 1740 MHz, 7251 MHz"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpu_as_found("GPU-1234").name == "NVIDIA A40"
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader", "--id=GPU-1234"]


def test_a_page_of_a_gpu_names_it_and_its_counts(row: SpeedRow) -> None:
    machine = SpeedMachine("cpu", 8, "Linux", (0.5,), "NVIDIA A40", "550.54.15", "graphics 1740 MHz, memory 7251 MHz")
    counts = ProfileCounts(2.0, 30.0, 1.0, 31.0, 2.0, 1.0, 4.0, 0.0)
    steady = replace(row.steady[0], configuration="reduce-overhead", profile_before=counts)
    text = page.markdown([replace(row, device="cuda", machine=machine, steady=(steady,))])
    assert "NVIDIA A40, driver 550.54.15, graphics 1740 MHz" in text
    assert "has run on a GPU" not in text
    assert "| scale | reduce-overhead | 2 → 0 | 30 → ? |" in text


def test_results_of_both_arms_are_compared_where_cold_starts_are_made(row: SpeedRow) -> None:
    assert row.cold is not None
    assert row.cold.breaks == (1, 0)
    assert row.cold.graphs == (2, 1)
    assert row.cold.eager_equal is True
    assert row.cold.compiled_differs == ("", "")


def test_models_compile_at_the_same_time_and_each_is_timed_alone() -> None:
    turns = Turns()
    compiling, seen, together = 0, [], threading.Barrier(3)

    def model() -> None:
        nonlocal compiling
        with turns.compiling():
            compiling += 1
            together.wait(timeout=20)  # all three are inside, or this raises
            compiling -= 1
        with turns.timing():
            seen.append(compiling)

    threads = [threading.Thread(target=model) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(timeout=20)
    assert seen == [0, 0, 0]


def test_nobody_compiles_while_a_model_is_timed() -> None:
    turns, order = Turns(), []
    begun = threading.Event()

    def other() -> None:
        begun.set()
        with turns.compiling():
            order.append("compiled")

    with turns.timing():
        thread = threading.Thread(target=other)
        thread.start()
        begun.wait(timeout=20)
        time.sleep(0.05)
        order.append("timed")
    thread.join(timeout=20)
    assert order == ["timed", "compiled"]
