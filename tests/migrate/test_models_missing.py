"""What cannot be evaluated is said before any work, and what a model's code did to the checkout afterwards."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from graphmend_codemod.evaluation.model_modules import missing_module
from graphmend_codemod.repository.checkout import open_checkout
from graphmend_codemod.repository.checkout_state import changed_meanwhile, checkout_state
from tests.repository.tools import Repository, run, untouched

PATHS = frozenset({"zoo/__init__.py", "zoo/model.py", "src/deep/er/__init__.py", "a/b/c/far.py", "space/inner/one.py"})


def test_a_module_that_is_not_committed_is_said_at_once(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("zoo/factory.py", "def make():\n    raise SystemExit\n")
    began = time.monotonic()
    with untouched(repository):
        assert run(repository, "--model", "zoo.factory:make") == 2
    assert time.monotonic() - began < 5
    (line,) = capsys.readouterr().err.splitlines()
    assert "zoo/factory.py is not at main" in line
    assert "commit it, or name a commit that has it with --base" in line


def test_models_of_the_settings_are_looked_for_too(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.write("pyproject.toml", '[tool.graphmend]\nmodels = ["zoo.nothing:make"]\n')
    repository.commit()
    assert run(repository) == 2
    assert "there is no module zoo.nothing at main" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model",
    [
        "zoo.model:make",
        "zoo:make",
        "deep.er:make",
        "far:make",
        "space.inner:make",
        "huggingface:zoo.model:Class",
        "huggingface-id:org/name:Class",
        "recorded:/x/index-1.json#0",
        "pytest:make",  # installed: it may import the repository
        "_pytest.python:make",
    ],
)
def test_what_is_there_or_comes_from_elsewhere_is_left_to_the_evaluation(model: str) -> None:
    assert missing_module(model, PATHS, None, "main") is None


@pytest.mark.parametrize("model", ["zoo.factory:make", "nothing:make", "huggingface:zoo.other:Class", "deep.model:x"])
def test_what_is_nowhere_is_missing(model: str) -> None:
    assert "there is no module" in str(missing_module(model, PATHS, None, "main"))


def test_a_sandbox_without_bubblewrap_is_refused_before_any_work(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        if (Path(folder) / "git").exists() and not (programs / "git").exists():
            (programs / "git").symlink_to(Path(folder) / "git")
    monkeypatch.setenv("PATH", str(programs))
    assert run(repository, "--model", "zoo.model:make", "--sandbox") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--sandbox needs bubblewrap, which is not installed" in line


def test_what_models_wrote_to_the_checkout_is_named(repository: Repository) -> None:
    checkout = open_checkout(repository.folder)
    before = checkout_state(checkout)
    assert changed_meanwhile(before, checkout_state(checkout)) is None
    repository.write(".git/hooks/post-checkout", "#!/bin/sh\n")
    repository.write("zoo/model.py", "other\n")
    repository.write("new.py", "")
    repository.git("update-ref", "refs/heads/evil", "HEAD")
    remark = changed_meanwhile(before, checkout_state(checkout))
    assert remark is not None
    assert ".git/hooks/post-checkout, new.py, refs/heads/evil and 1 more" in remark


def test_a_file_that_was_changed_already_and_is_changed_again_is_named(repository: Repository) -> None:
    repository.write("zoo/model.py", "mine\n")
    checkout = open_checkout(repository.folder)
    before = checkout_state(checkout)
    repository.write("zoo/model.py", "theirs\n")
    assert "zoo/model.py" in str(changed_meanwhile(before, checkout_state(checkout)))
