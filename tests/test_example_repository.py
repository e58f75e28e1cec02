"""The repository in examples/ shows what it is meant to show, and comes out whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "tiny_model"

STRICT = """
import importlib, torch
for name in ("tagger", "tagger_half"):
    model, inputs = getattr(importlib.import_module("tiny_model.factory"), name)()
    compiled = torch.compile(model, backend="eager", dynamic=False)
    with torch.no_grad(), torch._dynamo.error_on_graph_break(True):
        assert torch.equal(compiled(*inputs), model(*inputs))
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    copy = tmp_path / "tiny_model"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def graphmend(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphmend_codemod", *arguments]
    return subprocess.run(command, cwd=repository, env=environment(ROOT), capture_output=True, text=True, check=False)


def environment(path: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"}


def test_the_example_shows_one_site_of_each_common_kind(repository: Path) -> None:
    done = graphmend(repository, "check", "--no-cache", "--output-format", "json")
    assert done.returncode == 1, done.stderr
    codes = [finding["code"] for finding in json.loads(done.stdout)["findings"]]
    assert sorted(codes) == ["GM101", "GM103", "GM104", "GM201", "GM201", "GM301"]


def test_the_fixed_example_is_one_graph(repository: Path) -> None:
    assert graphmend(repository, "fix", "--no-cache").returncode == 1
    assert graphmend(repository, "fix", "--no-cache").returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", STRICT],
        cwd=repository,
        env=environment(repository),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
