"""`check --baseline`: a big repository adopts graphmend, and fails on new findings alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main

Captured = pytest.CaptureFixture[str]
CHECK = ["check", "--no-cache", "--baseline", "known.json"]
NEW = "\n\nclass Another(nn.Module):\n    def forward(self, x):\n        print('new')\n        return x\n"


def test_known_findings_do_not_count(project: Path, capsys: Captured) -> None:
    assert main(["check", "--no-cache"]) == 1
    assert main(CHECK) == 0
    assert main(CHECK) == 0
    assert "2 findings of known.json left out" in capsys.readouterr().err


def test_new_finding_counts_and_is_the_only_one_shown(project: Path, capsys: Captured) -> None:
    main(CHECK)
    model = project / "model.py"
    model.write_text(model.read_text() + NEW)
    capsys.readouterr()
    assert main([*CHECK, "--output-format", "json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["function"] == "Another.forward"


def test_lines_above_may_come_and_go(project: Path) -> None:
    main(CHECK)
    model = project / "model.py"
    model.write_text("import os  # new\n\n\n" + model.read_text())
    assert main(CHECK) == 0


def test_second_finding_like_a_known_one_is_new(project: Path, capsys: Captured) -> None:
    main(CHECK)
    model = project / "model.py"
    line = '        logger.info(f"got {x.shape[0]} rows")\n'
    model.write_text(model.read_text().replace(line, line * 2))
    capsys.readouterr()
    assert main(CHECK) == 1
    assert "Found 1 break site" in capsys.readouterr().out


def test_finding_that_is_gone_is_told_of_until_the_baseline_is_written_anew(project: Path, capsys: Captured) -> None:
    main(CHECK)
    (project / "model.py").write_text("from torch import nn\n")
    capsys.readouterr()
    assert main(CHECK) == 0
    assert "2 findings of known.json are gone; update the baseline with --update-baseline" in capsys.readouterr().err
    assert main([*CHECK, "--update-baseline"]) == 0
    capsys.readouterr()
    main(CHECK)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["{", "[]", '{"graphmend-findings": 9, "findings": []}', '{"graphmend-breaks": 1}'])
def test_file_that_is_no_baseline_is_named_with_the_way_out(project: Path, capsys: Captured, text: str) -> None:
    (project / "known.json").write_text(text)
    assert main(CHECK) == 2
    err = capsys.readouterr().err
    assert "known.json: is not a baseline of findings" in err
    assert "--update-baseline" in err
