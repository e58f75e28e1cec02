"""The forge to try the bot at: what it tells a new user to do works word for word."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository.tools import CHECKOUT, isolate


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """The script, running."""
    isolate(monkeypatch, tmp_path)
    command = [sys.executable, str(CHECKOUT / "scripts/local_forge.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_its_commands_open_a_pull_request_and_show_it(forge: subprocess.Popen[str], tmp_path: Path) -> None:
    assert forge.stdout is not None
    told = [forge.stdout.readline() for _ in range(7)]
    exported = next(line.split()[1] for line in told if line.startswith("  export "))
    commands = [shlex.split(line)[1:] for line in told if line.startswith("  graphmend ")]
    environment = {**os.environ, **dict([exported.split("=")])}
    for arguments, words in zip(commands, ("dry run: would be opened", "opened http://127.0.0.1:"), strict=True):
        command = [sys.executable, "-m", "graphmend_codemod", *arguments, "--no-cache", "--jobs", "1"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done
        assert done.stdout.startswith(words)
    shown = re.match(r"pull request 7, open: Remove \d+ graph break sites", forge.stdout.readline())
    assert shown is not None
    page = Path(forge.stdout.readline().strip())
    assert "<h3>Change or stop the bot</h3>" in page.read_text()
    clone = next(line for line in told if "git clone" in line).split()
    subprocess.run([*clone, str(tmp_path / "clone")], check=True, capture_output=True, timeout=60)
    assert (tmp_path / "clone/tiny_model/model.py").exists()
    forge.send_signal(signal.SIGINT)
    assert forge.wait(timeout=20) == 0
    assert not page.exists()
