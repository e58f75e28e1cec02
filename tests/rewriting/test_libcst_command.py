"""`python -m libcst.tool codemod` with graphmend's command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graphmend_codemod.core.settings import Settings
from graphmend_codemod.engine import api
from tests.rewriting.tools import block

MODEL = block(
    """
    import torch


    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if (x > 0).all():  # data-dependent
                x = x * 2
            return x
    """
)


def codemod(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "libcst.tool", "codemod", "-x", "--no-format", "--hide-progress", "-j1"]
    command += ["graphmend_codemod.libcst_command.GraphmendCommand", *arguments, "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_writes_what_fix_writes(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.graphmend]\nexclude = ["left.py"]\n')
    for name, text in {"model.py": MODEL, "left.py": MODEL, "plain.py": "x  = 1\n"}.items():
        (tmp_path / name).write_text(text)
    (expected,) = api.fix([], Settings(tmp_path, exclude=("left.py",)), write=False, cache=False).fixes
    done = codemod(tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.py").read_bytes() == expected.after
    assert (tmp_path / "left.py").read_text() == MODEL
    assert (tmp_path / "plain.py").read_text() == "x  = 1\n"


def test_its_options_are_those_of_fix_and_what_cannot_be_used_leaves_files_alone(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    assert codemod(tmp_path, "--ignore", "GM1,GM3").returncode == 0
    done = codemod(tmp_path, "--select", "GM999")
    assert "unknown rule code `GM999`" in done.stderr
    assert (tmp_path / "model.py").read_text() == MODEL
