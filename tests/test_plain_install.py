"""`pip install graphmend` without extras: what needs one says so in one line before any work, the rest works."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from graphmend_codemod.core.report_folder import report_folder
from tests.repository.tools import CHECKOUT, Repository, broken_repository, isolate

# And what these need.
DEPENDENCIES = ("git", "gitdb", "smmap", "joblib", "cloudpickle", "tomli", "libcst", "yaml", "psutil")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has graphmend and what it depends on, and no extra."""
    folder = tmp_path_factory.mktemp("plain")
    venv.create(folder, with_pip=False, symlinks=True)
    installed = Path(sysconfig.get_path("purelib"))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for name in DEPENDENCIES:
        if (installed / name).is_dir():
            (packages / name).symlink_to(installed / name)
    (packages / "graphmend_codemod").symlink_to(CHECKOUT / "graphmend_codemod")
    (packages / "graphmend_evaluation").symlink_to(CHECKOUT / "evaluation/graphmend_evaluation")
    return folder / "bin/python"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    isolate(monkeypatch, tmp_path)
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("GRAPHMEND_TOKEN", "secret")
    repository = broken_repository(tmp_path / "zoo")
    repository.git("remote", "add", "origin", "https://github.com/octo/zoo.git")
    (tmp_path / "list.txt").write_text(f"{repository.folder}\n")
    (tmp_path / "addresses.txt").write_text("https://github.com/octo/zoo\n")
    return repository


def graphmend(plain: Path, repository: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(plain), "-P"] if sys.version_info >= (3, 11) else [str(plain)]
    return subprocess.run(
        [*command, "-m", "graphmend_codemod", *arguments],
        cwd=repository.folder.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["pr", "zoo", "--dry-run"], "bot"),
        (["fleet", "pr", "list.txt"], "bot"),
        (["fleet", "check", "addresses.txt"], "bot"),
        (["fleet", "check", "list.txt", "--scheduler", "tcp://127.0.0.1:1"], "cluster"),
        (["fleet", "migrate", "list.txt", "--evaluate"], "eval"),
        (["evaluate", "zoo", "--model", "zoo.model:Model", "--base", "HEAD"], "eval"),
        (["migrate", "zoo", "--model", "zoo.model:Model"], "eval"),
    ],
)
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(
    plain: Path, repository: Repository, arguments: list[str], extra: str
) -> None:
    done = graphmend(plain, repository, *arguments)
    assert done.returncode == 2, done
    assert f"pip install 'graphmend[{extra}]" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert not report_folder(repository.common, "any").parent.exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "zoo"], 1),
        (["migrate", "zoo"], 0),
        (["fleet", "check", "list.txt"], 1),
        (["fleet", "migrate", "list.txt"], 0),
        (["rules"], 0),
    ],
)
def test_what_needs_no_extra_works_without(
    plain: Path, repository: Repository, arguments: list[str], code: int
) -> None:
    done = graphmend(plain, repository, *arguments)
    assert (done.returncode, done.stderr) == (code, ""), done
