"""Dated files of results, the page that is made from them, and the models at their real size."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from graphmend_evaluation.paper import files, full, hub, real_sizes, rows, table
from graphmend_evaluation.paper.__main__ import main
from graphmend_evaluation.results import ModelRow, Status
from graphmend_evaluation.speed.results import SpeedMachine, SpeedRow
from tests.evaluation.test_results import AFTER, BEFORE

ABOUT = {"date": "2030-01-02 03:04 UTC", "torch": "2.13.0"}
NO_GPU = "Nothing on this page has run on a GPU yet"


def result(name: str, date: str = ABOUT["date"]) -> table.Measured:
    (row,) = rows.choose(name)
    return table.Measured(row, (ModelRow(f"m:{name}", BEFORE, AFTER),), date=date)


def real(device: str) -> full.FullRow:
    machine = SpeedMachine("a processor", 2, "Linux", (0.1, 0.2), gpu="A40" if device == "cuda" else "")
    speed = SpeedRow("m:t5", Status.OK, "", 1.0, device=device, machine=machine)
    return full.FullRow("t5-small", "random", ModelRow("m:t5", BEFORE, AFTER), speed, speed)


def page(folder: Path) -> str:
    assert main(["--render", str(folder), "--page", str(folder / "page.md")]) == 0
    return (folder / "page.md").read_text()


def test_page_begins_with_the_answer_and_says_what_has_not_run(tmp_path: Path) -> None:
    files.write_table([result("t5")], [hub.NotRun("Florence-2-large", "no network")], ABOUT, tmp_path)
    text = page(tmp_path)
    assert "**5 of 27 models were run: 25 breaks before, 0 after; 5 models are one graph.**" in text
    assert "leaves 0 of 15 in the same models. No row's eager results have changed." in text
    assert "| Florence-2-large | 7 (-100%) | no network |" in text
    assert NO_GPU in text


def test_newest_file_is_rendered(tmp_path: Path) -> None:
    files.write_table([result("t5")], [], ABOUT, tmp_path)
    files.write_table([result("clap")], [], {**ABOUT, "date": "2030-02-01 00:00 UTC"}, tmp_path)
    text = page(tmp_path)
    assert "2030-02-01.json" in text
    assert "| clap |" in text


@pytest.mark.parametrize(("device", "told"), [("cpu", True), ("cuda", False)])
def test_page_says_that_no_gpu_was_there_until_one_was(tmp_path: Path, device: str, told: bool) -> None:
    files.write_table([result("t5")], [], ABOUT, tmp_path)
    files.write_full([real(device)], ABOUT, tmp_path)
    text = page(tmp_path)
    assert (NO_GPU in text) is told
    assert f"| t5-small | random | {'processor' if told else 'A40'} | large | - | 6 -> 1 | identical |" in text


def test_a_run_of_other_batches_is_put_beside_the_one_before(tmp_path: Path) -> None:
    whole = real("cuda")
    files.write_full([replace(whole, row=None, many=None), replace(whole, model="bart-base")], ABOUT, tmp_path)
    first, second = files.merged_full(tmp_path, [replace(whole, row=None, one=None)])
    assert (first.model, second.model) == ("t5-small", "bart-base")
    assert (first.one, first.many, first.row) == (whole.one, whole.many, None)
    files.write_full([first, second], ABOUT, tmp_path)
    files.write_table([result("t5")], [], ABOUT, tmp_path)
    assert "| t5-small | random | A40 | large | - | - | ? |" in page(tmp_path)


def test_update_keeps_rows_that_were_not_run_now(tmp_path: Path) -> None:
    old = [result("t5", "2030-01-01 00:00 UTC"), result("clap", "2030-01-01 00:00 UTC")]
    files.write_table(old, [hub.NotRun("Florence-2-large", "old")], ABOUT, tmp_path)
    merged, left = files.merged(tmp_path, [result("clap")], [hub.NotRun("chronos-bolt-small", "new")])
    assert [(each.row.name, each.date) for each in merged] == [("t5", old[0].date), ("clap", ABOUT["date"])]
    assert [each.model for each in left] == ["chronos-bolt-small", "Florence-2-large"]
    files.write_table(merged, left, ABOUT, tmp_path)
    assert f"Rows were not all measured at the same time: t5 ({old[0].date})" in page(tmp_path)


def test_table_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "2030-01-01.json").write_text(json.dumps({"schema": 1, "about": {}, "rows": []}))
    assert main(["--render", str(tmp_path), "--page", str(tmp_path / "page.md")]) == 2
    assert "2030-01-01.json is not a table of this version" in capsys.readouterr().err


def test_every_model_that_needs_no_remote_code_has_a_real_size() -> None:
    here = [model for row in rows.ROWS for model in row.stands_for]
    assert sorted(full.MODELS) == sorted(here)
    for name, (attribute, _) in full.MODELS.items():
        assert getattr(real_sizes, attribute).model == name


@pytest.mark.parametrize(
    ("attribute", "millions"),
    [("t5_small", 60.5), ("whisper_small", 241.7), ("bart_base", 139.4), ("phi_4_mini_instruct", 3836.0)],
)
def test_real_sizes_have_as_many_parameters_as_published(attribute: str, millions: float) -> None:
    size = getattr(real_sizes, attribute)
    with torch.device("meta"):
        model, inputs = size.random_many()
    assert sum(each.numel() for each in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)
    assert next(model.parameters()).dtype == size.dtype
    assert {each.shape[0] for each in inputs.values()} == {size.many}


def test_weights_without_a_hub_need_the_user_s_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(full.FullError, match="pass --random-weights"):
        full.weights(["t5-small"], tmp_path, random=False)
    assert full.weights(["t5-small"], tmp_path, random=True) == {"t5-small": "random"}


def test_run_that_is_not_whole_is_told_by_the_row() -> None:
    row = real("cpu")
    assert row.ok
    assert row.one is not None
    assert not replace(row, many=replace(row.one, status=Status.TIMEOUT)).ok
