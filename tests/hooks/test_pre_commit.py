"""Our hooks under the real pre-commit."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

CHECKOUT = Path(__file__).parent.parent.parent
Git = Callable[..., "subprocess.CompletedProcess[str]"]


def pre_commit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps environments and logs of pre-commit away from the user's."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))


def test_the_manifest_is_valid() -> None:
    done = pre_commit("validate-manifest", str(CHECKOUT / ".pre-commit-hooks.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_run_on_staged_files_only(repository: Path, git: Git, graphmend: str, before: str, after: str) -> None:
    (repository / ".pre-commit-config.yaml").write_text(
        f"""
repos:
  - repo: local
    hooks:
      - id: graphmend
        name: graphmend
        entry: {graphmend} fix
        language: system
        types: [python]
        require_serial: true
"""
    )
    (repository / "staged model.py").write_text(before)
    git("add", ".")
    (repository / "untracked.py").write_text(before)
    installed = pre_commit("install")
    assert installed.returncode == 0, installed.stdout + installed.stderr

    refused = git("commit", "-m", "Add a model")
    assert refused.returncode != 0
    assert "files were modified by this hook" in refused.stderr
    assert "staged model.py: GM201" in refused.stderr
    assert (repository / "staged model.py").read_text() == after
    assert (repository / "untracked.py").read_text() == before

    git("add", "staged model.py")
    accepted = git("commit", "-m", "Add a model")
    assert accepted.returncode == 0, accepted.stderr


def of_readme(release: Path) -> tuple[str, str]:
    """The README's lines for pre-commit, with a clone in the place of the address; and their tag."""
    text = (CHECKOUT / "README.md").read_text()
    config = text.partition("```yaml\n")[2].partition("```")[0]
    (address,) = re.findall(r"repo: (\S+)", config)
    (tag,) = re.findall(r"rev: (\S+)", config)
    return config.replace(address, str(release)), tag


@pytest.mark.slow
def test_the_published_hooks_install_without_torch_and_run(
    tmp_path: Path, repository: Path, git: Git, before: str, after: str
) -> None:
    release = tmp_path / "release"
    subprocess.run(["git", "clone", "--quiet", "--no-tags", str(CHECKOUT), str(release)], check=True)
    config, tag = of_readme(release)
    subprocess.run(["git", "-C", str(release), "tag", tag], check=True)
    check = "      - id: graphmend-check\n        stages: [manual]\n"
    (repository / ".pre-commit-config.yaml").write_text(config + check)
    (repository / "model.py").write_text(before)
    git("add", ".")
    checked = pre_commit("run", "--hook-stage", "manual", "graphmend-check")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert "model.py:11:9: GM201 [*]" in checked.stdout
    assert (repository / "model.py").read_text() == before
    fixed = pre_commit("run")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr
    assert (repository / "model.py").read_text() == after
    installed = {path.name for path in (tmp_path / "pre-commit").glob("**/site-packages/*")}
    assert {"graphmend_codemod", "joblib"} <= installed
    assert "torch" not in installed
