"""`graphmend evaluate`: two commits compared, what is wrong named, interrupted runs taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphmend_codemod.cli.main import main
from tests.repository.tools import Repository, untouched

FACTORIES = """\
import os
import time

import torch

from zoo.model import Model


def make():
    return Model(), [(torch.ones(2, 4),), (-torch.ones(2, 4),)]


def crash():
    os.abort()


def wait():
    with open(os.environ["WAITS_AT"], "w") as file:
        file.write(str(os.getpid()))
    while not os.path.exists(os.environ["WAITS_AT"] + ".go"):
        time.sleep(0.05)
    return make()
"""


@pytest.fixture
def repository(repository: Repository) -> Repository:
    repository.write("zoo/factories.py", FACTORIES)
    repository.commit()
    return repository


def migrated(repository: Repository) -> None:
    assert main(["migrate", str(repository.folder), "--branch", "mend", "--no-evaluate", "--jobs", "1"]) == 0


def evaluate(repository: Repository, *options: str, report: Path) -> tuple[int, dict[str, Any]]:
    with untouched(repository):
        code = main(["evaluate", str(repository.folder), "--report", str(report), "--jobs", "1", *options])
    file = report / "report.json"
    return code, json.loads(file.read_text()) if file.exists() else {}


def test_a_branch_is_compared_with_where_it_began(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    migrated(repository)
    code, document = evaluate(
        repository, "--head", "mend", "--model", "zoo.factories:make", "--model", "zoo.factories:crash",
        report=tmp_path / "report",
    )  # fmt: skip
    assert code == 1  # a model crashed
    assert document["base"]["oid"] == repository.git("rev-parse", "main")
    assert document["head"]["name"] == "mend"
    good, lost = document["models"]
    assert [good["row"][arm]["counts"]["break_events"] for arm in ("before", "after")] == [2, 0]
    assert sorted((site["rule"], site["site"]["line"]) for site in good["fixed"]) == [("GM101", 17), ("GM201", 15)]
    assert {site["change"] for site in good["fixed"]} <= {change["id"] for change in document["changes"]}
    assert lost["row"]["before"]["status"] == "crashed"
    assert "SIGABRT" in lost["row"]["before"]["message"]
    assert "zoo.factories:make" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"report.html", "report.json", "report.md"}


@pytest.mark.slow
def test_a_wrong_line_of_a_branch_is_named(repository: Repository, tmp_path: Path) -> None:
    migrated(repository)
    repository.git("checkout", "-q", "mend")
    path = repository.folder / "zoo/model.py"
    path.write_text(path.read_text().replace("return y", "return y + 1e-6"))
    repository.commit()
    code, document = evaluate(repository, "--base", "main", "--model", "zoo.factories:make", report=tmp_path / "report")
    assert code == 1
    (reverted,) = document["reverted"]
    assert reverted["cause"] == "the eager result changed"
    assert "+        return y + 1e-6" in reverted["change"]["diff"]
    assert "torch.where" not in "".join(
        line for line in reverted["change"]["diff"].splitlines(keepends=True) if line.startswith("+")
    )


@pytest.mark.slow
def test_what_was_measured_before_an_interruption_is_not_measured_again(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrated(repository)
    waits = tmp_path / "waits"
    monkeypatch.setenv("WAITS_AT", str(waits))
    options = ["--head", "mend", "--model", "zoo.factories:make", "--model", "zoo.factories:wait"]
    command = [sys.executable, "-m", "graphmend_codemod", "evaluate", str(repository.folder), "--jobs", "1", *options]
    with untouched(repository):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not waits.exists() or not waits.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (
        130, "graphmend: interrupted; what was measured is kept for the next run\n",
    )  # fmt: skip
    Path(f"{waits}.go").touch()
    # Other processes again: a row is known where the same things are installed, and tests change the path of theirs.
    report = tmp_path / "report"
    for more, expected in ([], [True, False]), (["--no-resume"], [False, False]):
        subprocess.run([*command, *more, "--report", str(report)], check=True, capture_output=True)
        document = json.loads((report / "report.json").read_text(encoding="utf-8"))
        assert [model["remembered"] for model in document["models"]] == expected


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "there is no model to evaluate: name one with --model"),
        (["--model", "zoo.factories:make"], "is not on a separate branch; pass the commit to compare with as --base"),
        (["--base", "nowhere", "--model", "zoo.factories:make"], "no commit is called 'nowhere'"),
        (["--base", "main", "--huggingface"], "there is no model to evaluate; --huggingface: no changed file belongs"),
        (["--base", "main", "--model-timeout", "0", "--model", "m:f"], "must be a number above 0"),
    ],
)
def test_what_cannot_be_done_ends_in_one_line(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    base = [] if "--base" in options or "--model" in options else ["--base", "main"]
    try:
        code, _ = evaluate(repository, *base, *options, report=tmp_path / "report")
    except SystemExit as error:  # argparse
        code = int(str(error.code))
    assert code == 2
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert os.listdir(tmp_path / "tmp") == []


def test_models_of_the_repository_s_tests_are_called_by_their_classes(repository: Repository, tmp_path: Path) -> None:
    repository.write(
        "tests/test_model.py",
        "import torch\n\nfrom zoo.model import Model\n\n\ndef test_rows():\n    model = Model()\n"
        "    for rows in (1, 2):\n        assert model(torch.ones(rows, 4)).shape == (rows, 4)\n",
    )
    repository.commit()
    migrated(repository)
    code, document = evaluate(repository, "--head", "mend", "--from-tests", "tests -q", report=tmp_path / "report")
    assert code == 0
    (model,) = document["models"]
    assert model["row"]["model"] == "zoo.model:Model (recorded 1)"
    assert model["source"] == "tests"
    assert [model["row"][arm]["counts"]["break_events"] for arm in ("before", "after")] == [2, 0]


@pytest.mark.slow
def test_times_stand_in_every_report_with_their_noise_and_what_the_budget_cut(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")  # Inductor's would take most of the time of all tests here
    command = ["migrate", str(repository.folder), "--branch", "mend", "--jobs", "1", "--report", str(tmp_path / "all")]
    with untouched(repository, but="mend"):
        assert main([*command, "--model", "zoo.factories:make", "--speed-budget", "1"]) == 0
    report = tmp_path / "all" / "evaluation"
    said = capsys.readouterr().out
    assert f"Models: {report / 'report.html'}" in said
    document = json.loads((report / "report.json").read_text())
    speed = document["models"][0]["speed"]
    assert (speed["status"], speed["backend"], speed["cold"]["repetitions"]) == ("ok", "aot_eager", 1)
    assert [steady["configuration"] for steady in speed["steady"]] == ["eager", "aot_eager"]
    for steady in speed["steady"]:
        assert {len(steady[f"blocks_{arm}_s"]) for arm in ("before", "after")} == {6}
        assert steady["latency_s"]["difference"]["noise"] > 0
    remarks = " ".join(speed["remarks"])
    assert "1 of 4 cold starts an arm fitted into the 1 s for one model" in remarks
    assert "6 of 20 rounds fitted into" in remarks
    assert "one process an arm" in remarks
    untold = "cold start, CPU time: too few repetitions to tell in 1 model"
    assert untold in said
    assert untold in (tmp_path / "all" / "report.md").read_text()
    for name in ("report.md", "report.html"):
        text = (report / name).read_text().replace("\\", "")
        assert "too few repetitions to tell" in text, name
        assert "1 of 4 cold starts" in text, name
        assert "aot_eager" in text, name
        assert ("±" if name.endswith("md") else "noise ") in text, name
