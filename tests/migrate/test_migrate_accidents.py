"""`graphmend migrate` when something goes wrong: nothing of the user's is changed or lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graphmend_codemod.core.settings import Settings, load_settings
from graphmend_codemod.engine import api
from graphmend_codemod.engine.fixpoint import Veto
from graphmend_codemod.migrate.migration import MigrationError, MigrationOptions, migrate
from graphmend_codemod.migrate.per_rule import Engine
from tests.repository.tools import (
    BROKEN,
    COMMAND,
    Repository,
    default_branch,
    empty_repository,
    report_of,
    run,
    untouched,
)


def request(repository: Repository) -> MigrationOptions:
    return MigrationOptions(repository.folder, load_settings, branch="mend", cache=False)


def test_a_file_that_cannot_be_parsed_is_reported_and_the_rest_goes_on(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("zoo/python2.py", "import torch\nfrom torch import nn\nclass M(nn.Module):\n  def forward(:\n")
    repository.commit()
    with untouched(repository, but=default_branch()):
        assert run(repository) == 0
    markdown, document = report_of(repository)
    assert "## Not checked\n\n- `zoo/python2.py`: " in markdown
    problems = document["problems"]
    assert isinstance(problems, list)
    assert [problem["path"] for problem in problems] == ["zoo/python2.py"]
    assert "zoo/python2.py" in capsys.readouterr().err


def test_only_files_that_cannot_be_parsed_exit_with_2(tmp_path: Path) -> None:
    repository = empty_repository(tmp_path / "old")
    repository.write("old.py", "import torch\nfrom torch import nn\nclass M(nn.Module):\n  def forward(:\n")
    repository.commit()
    with untouched(repository):
        assert run(repository) == 2


def test_a_file_that_something_else_changes_meanwhile_is_left_alone(repository: Repository) -> None:
    repository.write("second.py", BROKEN)
    repository.commit()

    def meddling_fix(
        paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int, cache: bool, vetoes: Sequence[Veto]
    ) -> api.FixResult:
        (settings.root / "second.py").write_text(BROKEN + "# meddled\n")
        return api.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes)

    with untouched(repository, but="mend"):
        outcome = migrate(request(repository), engine=Engine(fix=meddling_fix))
    assert repository.git("diff", "--name-only", "main", "mend") == "zoo/model.py"
    assert "second.py: was changed by another process" in " ".join(map(str, outcome.problems))
    assert outcome.exit_code == 0


def test_a_file_that_disappears_meanwhile_costs_only_itself(repository: Repository) -> None:
    repository.write("second.py", BROKEN)
    repository.commit()

    def deleting_fix(
        paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int, cache: bool, vetoes: Sequence[Veto]
    ) -> api.FixResult:
        (settings.root / "second.py").unlink(missing_ok=True)
        return api.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes)

    with untouched(repository, but="mend"):
        migrate(request(repository), engine=Engine(fix=deleting_fix))
    assert repository.git("diff", "--name-only", "main", "mend") == "zoo/model.py"


def test_commits_of_the_user_meanwhile_do_not_matter(repository: Repository) -> None:
    base = repository.git("rev-parse", "HEAD")

    def slow_fix(
        paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int, cache: bool, vetoes: Sequence[Veto]
    ) -> api.FixResult:
        repository.write("zoo/model.py", "rewritten = 1\n")
        repository.git("commit", "--quiet", "--all", "--allow-empty", "-m", "Meanwhile")
        return api.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes)

    outcome = migrate(request(repository), engine=Engine(fix=slow_fix))
    assert outcome.base.oid == base
    assert repository.git("rev-parse", "mend~2") == base
    assert (repository.folder / "zoo/model.py").read_text() == "rewritten = 1\n"


SLOW = """\
import sys, time
from pathlib import Path
from graphmend_codemod.engine import api as runner
from graphmend_codemod.cli.main import main
from graphmend_codemod.migrate import migration, per_rule as rule_by_rule

def slow_fix(paths, settings, **options):
    done = runner.fix(paths, settings, **options)
    print(settings.root, flush=True)
    time.sleep(600)
    return done

migration.reading_once = lambda: rule_by_rule.Engine(fix=slow_fix)
sys.exit(main(sys.argv[1:]))
"""


def started(repository: Repository, *, group: bool = False) -> tuple[subprocess.Popen[str], Path]:
    """A migration that sits in the middle of its first rule, and its work tree."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "migrate", str(repository.folder), "--no-cache", "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=group,
    )
    assert process.stdout is not None
    root = Path(process.stdout.readline().strip())
    assert root.is_dir(), process.stderr and process.stderr.read()
    return process, root


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_an_interruption_leaves_neither_branch_nor_work_tree(
    repository: Repository, number: signal.Signals, code: int
) -> None:
    with untouched(repository):
        process, root = started(repository)
        assert root.is_dir()
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
        assert process.returncode == code
        assert told == "graphmend: interrupted; nothing was changed\n"
        assert not root.exists()


def test_an_impatient_interruption_from_the_terminal_is_cleaned_up_too(repository: Repository) -> None:
    with untouched(repository):
        process, root = started(repository, group=True)
        for _ in range(3):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.02)
        process.communicate(timeout=60)
        # The last one may find Python on its way out.
        assert process.returncode in {130, -signal.SIGINT}
        assert not root.exists()


def test_a_killed_run_is_cleaned_up_by_the_next_run(repository: Repository) -> None:
    with untouched(repository, but="mend"):
        process, root = started(repository)
        process.kill()
        process.communicate()
        assert root.is_dir()
        assert run(repository, "--branch", "mend") == 0
        assert not root.exists()


def test_two_runs_at_once_do_not_meet(repository: Repository) -> None:
    process, root = started(repository)
    assert run(repository, "--branch", "mend") == 0
    assert root.is_dir()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert len(repository.subjects("mend")) == 2


def test_the_slower_of_two_runs_with_one_branch_loses_cleanly(repository: Repository) -> None:
    tips: list[str] = []

    def overtaken_fix(
        paths: Sequence[Path], settings: Settings, *, write: bool, jobs: int, cache: bool, vetoes: Sequence[Veto]
    ) -> api.FixResult:
        if not tips:
            tips.append("")
            assert run(repository, "--branch", "mend") == 0
            tips.append(repository.git("rev-parse", "mend"))
        return api.fix(paths, settings, write=write, jobs=jobs, cache=cache, vetoes=vetoes)

    with untouched(repository, but="mend"), pytest.raises(MigrationError, match="branch mend exists already"):
        migrate(request(repository), engine=Engine(fix=overtaken_fix))
    assert repository.git("rev-parse", "mend") == tips[1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = (
        shutil.which("mount")
        and os.geteuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False, capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("this system does not let tests mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(file: Path) -> None:
    with pytest.raises(OSError, match="No space left"), file.open("wb", buffering=0) as stream:  # noqa: PT012
        while True:
            stream.write(b"\0" * 4096)


def test_a_full_disk_is_told_and_leaves_the_repository_as_it_was(
    repository: Repository, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(repository.folder, small_disk / "full")
    full = Repository(small_disk / "full")
    filler = small_disk / "filler"
    fill(filler)
    with untouched(full):
        assert run(full) == 2
    told = capsys.readouterr().err
    assert "No space left on device" in told
    assert told.count("\n") == 1
    filler.unlink()
    assert run(full) == 0


def test_a_full_temporary_folder_is_told(
    repository: Repository,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    repository.write("large.bin", os.urandom(2_000_000))
    repository.commit()
    monkeypatch.setenv("TMPDIR", str(small_disk))
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    with untouched(repository):
        assert run(repository, "--dry-run") == 0  # what is not read is not written
    capsys.readouterr()
    with untouched(repository):
        assert run(repository, "--model", "zoo.model:Model") == 2
    told = capsys.readouterr().err
    assert f"cannot be checked out into {small_disk}/graphmend-" in told
    assert "TMPDIR may name a folder with more space" in told
    assert told.count("\n") == 1


def test_a_read_only_repository_is_told(
    repository: Repository, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(repository.folder, small_disk / "fixed")
    fixed = Repository(small_disk / "fixed")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with untouched(fixed):
        assert run(fixed) == 2
    told = capsys.readouterr().err
    assert "Read-only file system" in told
    assert told.count("\n") == 1


def test_an_interruption_while_git_makes_the_work_tree_is_130(repository: Repository, tmp_path: Path) -> None:
    """From the terminal: git gets the signal as well, and ends first."""
    mark, real = tmp_path / "making", shutil.which("git")
    slow = tmp_path / "slow/git"
    slow.parent.mkdir()
    making = 'case "$*" in *"worktree add"*) : > "$MARK"; sleep 20;; esac'
    slow.write_text(f'#!/bin/sh\n{making}\nexec {real} "$@"\n')
    slow.chmod(0o755)
    environment = {**os.environ, "MARK": str(mark), "PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}"}
    with untouched(repository):
        process = subprocess.Popen(
            [*COMMAND, str(repository.folder), "--no-evaluate"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + 60
        while not mark.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=15)
    assert (process.returncode, told) == (130, "graphmend: interrupted; nothing was changed\n")
