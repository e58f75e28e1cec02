"""`--trace`: only what broke in a recorded run is fixed, wherever its lines are by now."""

from __future__ import annotations

import dataclasses
import io
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.trace import document
from tests.trace.samples import MODEL, project, traced

Captured = pytest.CaptureFixture[str]
ELSEWHERE = (
    "\n\nclass Other(nn.Module):\n    def forward(self, x: torch.Tensor):\n        print('other')\n        return x\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a site that no run has met, and the trace of a run; the current folder."""
    project(tmp_path)
    (tmp_path / "trace.json").write_text(document.as_json(traced(tmp_path)))
    (tmp_path / "model.py").write_text(MODEL + ELSEWHERE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fixed(folder: Path) -> str:
    return (folder / "model.py").read_text()


def test_only_what_broke_is_fixed(folder: Path, capsys: Captured) -> None:
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 1
    assert "torch.where" in fixed(folder)
    # What else the file has is not what was asked about.
    assert "model.py: GM102, GM201\nFixed 2 break sites in 1 file.\n" in capsys.readouterr().out
    assert "        print('other')\n" in fixed(folder)


def test_a_file_without_a_site_is_not_judged(folder: Path, capsys: Captured) -> None:
    (folder / "other.py").write_text("import torch\n\n\nclass Broken(torch.nn.Module:\n")
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 1  # 2 where a file that is judged cannot be parsed
    assert "other.py" not in capsys.readouterr().err
    assert "torch.where" in fixed(folder)


def test_second_run_changes_nothing(folder: Path) -> None:
    main(["fix", "--no-cache", "--trace", "trace.json"])
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 0


def test_lines_above_may_have_moved(folder: Path) -> None:
    (folder / "model.py").write_text("import os  # new\n\n\n" + fixed(folder))
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 1
    assert "torch.where" in fixed(folder)
    assert "        print('other')\n" in fixed(folder)


def test_statement_that_was_rewritten_since_is_left(folder: Path) -> None:
    (folder / "model.py").write_text(fixed(folder).replace("x.sum() > 0", "x.sum() > 1"))
    main(["fix", "--no-cache", "--trace", "trace.json"])
    assert "torch.where" not in fixed(folder)


def test_trace_of_the_settings_serves_every_fix(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[tool.graphmend]\ntrace = "trace.json"\n')
    assert main(["fix", "--no-cache", "model.py"]) == 1
    assert "torch.where" in fixed(folder)
    assert "        print('other')\n" in fixed(folder)


def test_trace_of_the_settings_serves_text_from_a_pipe(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text('[tool.graphmend]\ntrace = "trace.json"\n')
    text = (folder / "model.py").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(["fix", "--no-cache", "-", "--stdin-filename", "model.py"]) == 1
    written = capfdbinary.readouterr().out
    assert b"torch.where" in written
    assert ELSEWHERE.encode() in written


def test_trace_that_is_not_there_is_told_of_and_nothing_is_fixed(folder: Path, capsys: Captured) -> None:
    before = fixed(folder)
    assert main(["fix", "--no-cache", "--trace", "none.json"]) == 2
    assert "none.json" in capsys.readouterr().err
    assert fixed(folder) == before


def untyped(folder: Path) -> None:
    """The model and its trace with a test, and callers, that do not show what `x` is."""
    for name, typed in (("model.py", "helper(x: torch.Tensor)"), ("trace.json", "")):
        text = (folder / name).read_text().replace("x.sum() > 0", "x > 0")
        text = text.replace(typed, "helper(x)").replace("self, x: torch.Tensor", "self, x: object") if typed else text
        (folder / name).write_text(text)


def test_type_that_only_the_run_knows_becomes_a_condition(folder: Path) -> None:
    untyped(folder)
    assert main(["check", "--no-cache", "--select", "GM1"]) == 0
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 1
    assert "isinstance(x, torch.Tensor)" in fixed(folder)
    assert "return torch.where(" in fixed(folder)


def test_name_that_held_something_else_at_times_is_no_hint(folder: Path) -> None:
    untyped(folder)
    text = (folder / "trace.json").read_text()
    (folder / "trace.json").write_text(text.replace('"type": "torch.Tensor"', '"type": "torch.Tensor or int"'))
    main(["fix", "--no-cache", "--trace", "trace.json"])
    assert "torch.where" not in fixed(folder)


def test_function_that_only_the_run_shows_to_be_compiled_is_looked_at(folder: Path) -> None:
    """Nothing in the project compiles this method of a plain class: its caller is another program."""
    source = MODEL.replace("class Model(nn.Module):\n    def forward", "class Model:\n    def forward")
    (folder / "model.py").write_text(source)
    assert main(["check", "--no-cache", "--select", "GM1,GM2"]) == 0
    assert main(["fix", "--no-cache", "--trace", "trace.json"]) == 1
    assert "torch.where(x.sum() > 0, x * 2, x)" in fixed(folder)


ATTRIBUTES = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, gate, layer):
        super().__init__()
        self.gate = gate
        self.layer = layer

    def forward(self, x: torch.Tensor):
        if self.gate > 0:
            x = x * 2
        y = self.layer(x)[0]
        return y + 1
"""


def seen(folder: Path, *facts: document.Fact) -> None:
    """The model with attributes, and a trace in which its `forward` got to a break with these facts."""
    (folder / "model.py").write_text(ATTRIBUTES)
    trace = document.read(folder / "trace.json")
    known = document.Known(document.SourceLine("model.py", 12, "forward"), facts)
    sites = tuple(
        dataclasses.replace(site, place=place, own=place, own_source=source)
        for site, place, source in zip(
            trace.sites,
            (document.SourceLine("model.py", 12, "forward"), document.SourceLine("model.py", 14, "forward")),
            ("if self.gate > 0:", "y = self.layer(x)[0]"),
            strict=True,
        )
    )
    (folder / "trace.json").write_text(document.as_json(dataclasses.replace(trace, sites=sites, known=(known,))))


def test_attribute_that_only_the_run_knows_as_a_tensor_is_asked_for(folder: Path) -> None:
    seen(folder, document.Fact("self.gate", "torch.Tensor"))
    (folder / "model.py").write_text(ATTRIBUTES.replace("self.layer(x)[0]", "x * 3"))
    assert main(["check", "--no-cache", "--select", "GM1"]) == 0
    main(["fix", "--no-cache", "--trace", "trace.json"])
    assert "isinstance(self.gate, torch.Tensor)" in fixed(folder)


def test_class_of_a_layer_that_only_the_run_knows_is_asked_for(folder: Path) -> None:
    seen(folder, document.Fact("self.layer", "torch.nn.modules.rnn.LSTM"))
    main(["fix", "--no-cache", "--opaque", "--trace", "trace.json"])
    assert '_fits_recurrent(self, "layer", torch.nn.LSTM, x)' in fixed(folder)


def test_layer_of_two_classes_is_no_hint(folder: Path) -> None:
    seen(folder, document.Fact("self.layer", "torch.nn.modules.rnn.LSTM or torch.nn.modules.rnn.GRU"))
    main(["fix", "--no-cache", "--opaque", "--trace", "trace.json"])
    assert fixed(folder) == ATTRIBUTES


def test_site_in_a_generated_file_says_why_there_is_no_fix(folder: Path, capsys: Captured) -> None:
    path = folder / "model.py"
    path.write_text("# AUTOGENERATED! DO NOT EDIT!\n" + path.read_text())
    main(["trace", "--show", "trace.json"])
    assert "= not applied: the file says that it is generated: change what it is made from" in capsys.readouterr().out


def test_site_whose_file_is_elsewhere_says_so(folder: Path, capsys: Captured) -> None:
    (folder / "model.py").unlink()
    main(["trace", "--show", "trace.json"])
    assert "There is no model.py in this folder: show the trace in the project's." in capsys.readouterr().out


def test_trace_from_before_the_fixes_is_not_joined_with_other_lines(folder: Path, capsys: Captured) -> None:
    main(["fix", "--no-cache", "--trace", "trace.json"])
    capsys.readouterr()
    main(["trace", "--no-cache", "--show", "trace.json"])
    shown = capsys.readouterr().out
    assert shown.count("= try: model.py has changed since the run, perhaps by a fix: record it once more.") == 2
    assert "2 without a rule" in shown


def test_shown_trace_finds_lines_that_have_moved(folder: Path, capsys: Captured) -> None:
    (folder / "model.py").write_text("import os  # new\n\n\n" + fixed(folder))
    main(["trace", "--no-cache", "--show", "trace.json"])
    assert "2 fixable with" in capsys.readouterr().out


def test_what_the_trace_does_not_name_is_not_counted_though_it_is_in_one_function(
    folder: Path, capsys: Captured
) -> None:
    settled = '        print("done")\n'
    assert settled in fixed(folder)
    more = '        try:\n            print("other")\n        except OSError:\n            pass\n'
    (folder / "model.py").write_text(fixed(folder).replace(settled, more + settled))
    main(["fix", "--no-cache", "--trace", "trace.json", "--diff"])
    assert "Would fix 2 break sites in 1 file.\n" in capsys.readouterr().err
