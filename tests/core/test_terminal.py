"""What others wrote does not steer a terminal, a log or a runner, wherever it is printed."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.report_folder import report_folder
from graphmend_codemod.core.terminal import COLOURS, printable, say
from tests.repository.tools import BROKEN, CHECKOUT, empty_repository, isolate

Captured = pytest.CaptureFixture[str]
ODD = "\x1b[2J\x1b]0;title\x07\u202e\u2066\u200b\r\x9b31m"
STEERING = [char for char in ODD if not char.isprintable()]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def quiet(*texts: str) -> bool:
    return not any(char in text for text in texts for char in STEERING)


def test_only_our_colours_are_left_as_they_are() -> None:
    stream = io.StringIO()
    say(f"\x1b[1;31mGM101\x1b[0m {ODD}\x1b[8mhidden\nsecond\tline", stream)
    shown = stream.getvalue()
    assert shown.startswith(
        "\x1b[1;31mGM101\x1b[0m \\x1b[2J\\x1b]0;title\\x07\\u202e\\u2066\\u200b\\r\\x9b31m\\x1b[8mhidden\n"
    )
    assert shown.endswith("\nsecond    line\n")
    assert printable(printable(ODD)) == printable(ODD)


@pytest.mark.parametrize(
    "line",
    [
        '"{odd}" = 1',
        'select = ["{odd}"]',
        'guards = "{odd}"',
        'pull-request = {{ "{odd}" = 1 }}',
        'exclude = "{odd}"',
    ],
)
def test_errors_about_settings_show_what_is_in_them(project: Path, capsys: Captured, line: str) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" for char in ODD)
    (project / "pyproject.toml").write_text(f"[tool.graphmend]\n{line.format(odd=escaped)}\n")
    for command in ("check", "fix"):
        assert main([command]) == 2
        told = capsys.readouterr()
        assert "\\x1b[2J" in told.err
        assert quiet(told.out, told.err)
        assert told.err.count("\n") == 1


def test_usage_errors_show_what_is_in_an_argument(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["check", f"--{ODD}"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert "\\x1b[2J" in told
    assert quiet(told)


@pytest.mark.parametrize(
    "options",
    [["--output-format", name] for name in ("full", "concise", "github", "markdown", "json", "sarif")]
    + [["--statistics"]],
)
def test_no_format_hands_on_what_is_in_a_file_name_or_in_source(
    project: Path, capsys: Captured, options: list[str]
) -> None:
    name = f"{ODD}::error::x ##[add-path]x".replace("/", "")
    (project / f"{name}.py").write_text(BROKEN.replace('"slow path"', '"slow \u202epath"'))
    (project / f"{name}2.py").write_text("import torch\ndef f(:\n")
    (project / "mean.py").write_text(BROKEN.replace("self.linear", "self.l\u0131near").replace("Model", "M\u00f6del"))
    assert main(["check", *options, "--no-cache"]) == 2
    told = capsys.readouterr()
    assert quiet(told.err)
    assert quiet(told.out)
    if "github" in options:
        lines = told.out.splitlines()
        assert all(line.startswith(("::warning file=", "::notice file=", "::error file=")) for line in lines)
        assert "##[" not in told.out


def test_a_diff_is_exact_in_a_pipe_with_a_note_and_visible_on_a_terminal(project: Path) -> None:
    text = BROKEN.replace('"slow path"', '"slow \u202epath\x1b[2J"')
    (project / "model.py").write_text(text)
    command = [sys.executable, "-m", "graphmend_codemod", "fix", "--diff", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": ""}
    piped = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=60)
    assert "\u202epath\x1b[2J".encode() in piped.stdout
    assert b"graphmend: note: the diff of model.py has control characters; the terminal shows" in piped.stderr
    subprocess.run(["git", "apply", "--check", "-"], input=piped.stdout, check=True)
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "rb", closefd=True) as shown:
        subprocess.run(command, env=environment, stdout=terminal, stderr=subprocess.PIPE, check=False, timeout=60)
        os.close(terminal)
        seen = shown.read1(100_000).decode()
    assert "slow \\u202epath\\x1b[2J" in seen
    for ours in ("\r\n", *(f"\x1b[{code}m" for code in COLOURS)):
        seen = seen.replace(ours, "\n")
    assert quiet(seen)


def test_a_migration_shows_file_names_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    isolate(monkeypatch, tmp_path)
    repository = empty_repository(tmp_path / "work")
    repository.write(f"{ODD.replace('/', '')}.py", BROKEN)
    repository.write(f"{ODD.replace('/', '')}2.py", "import torch\ndef f(:\n")
    repository.commit()
    assert main(["migrate", str(repository.folder), "--no-evaluate", "--jobs", "1"]) == 0
    told = capsys.readouterr()
    assert quiet(told.out, told.err)
    report = next(report_folder(repository.common, "any").parent.glob("*/report.md")).read_text()
    assert quiet(report)
