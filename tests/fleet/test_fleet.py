"""Many repositories in one run: one row each, whatever one of them does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.fleet import limits
from graphmend_codemod.fleet.jobs import Options, Order
from graphmend_codemod.fleet.report import blocking
from graphmend_codemod.fleet.results import FAILED, TOO_LONG, TOO_MUCH_DISK, TOO_MUCH_MEMORY, Row
from tests.fleet.tools import Fleet
from tests.forge.github_fake import Repo
from tests.forge.tools import BRANCH, TOKEN, Hub, adopt
from tests.repository.tools import BROKEN, CLEAN, Repository, broken_repository, empty_repository


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet without repositories."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)


def clean_repository(folder: Path) -> Repository:
    repository = empty_repository(folder)
    repository.write("model.py", CLEAN)
    repository.commit()
    return repository


def test_each_repository_has_a_row_and_a_failure_is_told(fleet: Fleet, tmp_path: Path) -> None:
    broken, clean = broken_repository(tmp_path / "a/broken"), clean_repository(tmp_path / "a/clean")
    (tmp_path / "a/empty").mkdir()
    done = fleet.run("check", fleet.listed(broken.folder, clean.folder, tmp_path / "a/empty"))
    assert done.returncode == 2, done
    assert done.stdout.splitlines()[-1] == "3 repositories, 2 sites found, 2 can be fixed, 1 failed"
    assert "not a git repository" in done.stderr
    rows = {Path(name).name: row for name, row in fleet.rows().items()}
    assert {name: (row.status, row.sites) for name, row in rows.items()} == {
        "broken": ("findings", 2),
        "clean": ("clean", 0),
        "empty": (FAILED, 0),
    }
    assert rows["broken"].seconds > 0


def test_a_folder_of_clones_is_checked_without_a_list(fleet: Fleet, tmp_path: Path) -> None:
    clean_repository(tmp_path / "clones/one")
    clean_repository(tmp_path / "clones/deep/two")
    assert fleet.run("check", tmp_path / "clones").returncode == 0
    assert sorted(fleet.rows()) == ["deep/two", "one"]


def test_one_clone_has_the_name_of_its_folder(fleet: Fleet, tmp_path: Path) -> None:
    clean_repository(tmp_path / "clones/one")
    assert fleet.run("check", tmp_path / "clones/one").returncode == 0
    assert sorted(fleet.rows()) == ["one"]


OPAQUE = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor):
        return self.lstm(x)[0]
"""


@pytest.mark.parametrize(
    ("options", "told"), [((), ("nothing to fix", 1, 0, 0)), (("--opaque",), ("findings", 1, 1, 1))]
)
def test_what_only_an_operator_fixes_counts_where_it_was_asked_for(
    fleet: Fleet, tmp_path: Path, options: tuple[str, ...], told: tuple[str, int, int, int]
) -> None:
    repository = empty_repository(tmp_path / "one")
    repository.write("model.py", OPAQUE)
    repository.write("pyproject.toml", '[project]\nname = "one"\nversion = "1"\ndependencies = ["torch>=2.13"]\n')
    repository.commit()
    done = fleet.run("check", tmp_path / "one", *options)
    row = fleet.rows()["one"]
    assert (row.status, row.sites, row.fixable, done.returncode) == told
    assert [reason.partition(":")[0] for reason, *_ in row.left] == ([] if options else ["GM801"])


def test_only_committed_files_count_and_links_are_not_followed(fleet: Fleet, tmp_path: Path) -> None:
    repository = clean_repository(tmp_path / "one")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "model.py").write_text(BROKEN)
    os.symlink(outside, repository.folder / "linked")
    os.symlink(outside / "model.py", repository.folder / "model2.py")
    repository.commit()
    repository.write("uncommitted.py", BROKEN)
    assert fleet.run("check", fleet.listed(repository.folder)).returncode == 0


def test_a_path_that_leads_out_of_the_tree_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    repository = clean_repository(tmp_path / "one")
    blob = repository.git("rev-parse", "HEAD:model.py")
    inner = subprocess.run(
        ["git", "-C", str(repository.folder), "mktree"],
        input=f"100644 blob {blob}\tx.py\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    outer = subprocess.run(
        ["git", "-C", str(repository.folder), "mktree"],
        input=f"040000 tree {inner}\t..\n",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    repository.git("update-ref", "refs/heads/main", repository.git("commit-tree", outer, "-m", "x"))
    done = fleet.run("check", fleet.listed(repository.folder))
    assert done.returncode == 2
    assert "is no path that git allows" in done.stderr


def test_resume_skips_what_is_done_and_tries_failures_again(fleet: Fleet, tmp_path: Path) -> None:
    broken, later = broken_repository(tmp_path / "broken"), tmp_path / "later"
    later.mkdir()
    listed = fleet.listed(broken.folder, later)
    assert fleet.run("check", listed).returncode == 2
    later.rmdir()
    clean_repository(later)
    broken.write("zoo/model.py", CLEAN)
    broken.commit()
    done = fleet.run("check", listed, "--resume")
    assert done.returncode == 1
    assert "1 of 2 are done already" in done.stderr
    assert [row.status for row in fleet.rows().values()] == ["findings", "clean"]
    assert fleet.run("check", listed).returncode == 0


def test_a_run_that_is_ended_keeps_its_rows_and_goes_on(fleet: Fleet, tmp_path: Path) -> None:
    repositories = [clean_repository(tmp_path / f"r/{number}") for number in range(4)]
    listed = fleet.listed(*(repository.folder for repository in repositories))
    running = subprocess.Popen(fleet.command("check", listed, "--jobs", "1"), stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    kept = len(fleet.rows())
    assert 1 <= kept < 4
    done = fleet.run("check", listed, "--resume")
    assert done.returncode == 0
    assert f"{kept} of 4 are done already" in done.stderr


def test_migrate_makes_a_branch_in_each_clone(fleet: Fleet, tmp_path: Path) -> None:
    broken = broken_repository(tmp_path / "broken")
    done = fleet.run("migrate", fleet.listed(broken.folder), "--branch", "mended")
    assert done.returncode == 0, done
    assert len(broken.subjects("mended")) == 2
    (row,) = fleet.rows().values()
    assert (row.status, row.sites, row.fixed) == ("migrated", 2, 2)


def test_pull_requests_are_opened_in_all_and_the_token_stays_hidden(fleet: Fleet, hub: Hub, tmp_path: Path) -> None:
    second = broken_repository(tmp_path / "second")
    adopt(hub.server, "octo/second", second)
    hub.fake.repos["octo/second"] = Repo("octo/second")
    listed = fleet.listed(
        f"{hub.server.url}/octo/zoo", f"{hub.server.url}/octo/second.git", f"{hub.server.url}/octo/no"
    )
    forge = ("--forge", "github", "--api-url", hub.fake.url)
    done = fleet.run("pr", listed, *forge)
    assert done.returncode == 2, done
    assert TOKEN not in done.stdout + done.stderr
    assert [len(hub.fake.repos[name].pulls) for name in ("octo/zoo", "octo/second")] == [1, 1]
    rows = {row.location.rpartition("/")[2]: row for row in fleet.rows().values()}
    assert (rows["zoo"].status, rows["zoo"].pull_request) == ("opened", f"{hub.server.url}/octo/zoo/pull/7")
    assert "404" in rows["no"].error
    assert TOKEN.encode() not in fleet.results.read_bytes()
    again = fleet.run("pr", listed, *forge)
    assert again.returncode == 2
    assert [len(hub.fake.repos[name].pulls) for name in ("octo/zoo", "octo/second")] == [1, 1]


def test_a_remote_repository_is_checked_without_its_large_files(fleet: Fleet, hub: Hub) -> None:
    hub.clone.write("weights.bin", os.urandom(5_000_000))
    hub.clone.commit()
    hub.push("main")
    done = fleet.run("check", fleet.listed(f"{hub.server.url}/octo/zoo"), "--forge", "github")
    assert done.returncode == 1, done
    assert hub.server.sent < 1_000_000
    (row,) = fleet.rows().values()
    assert row.sites == 2


def test_a_clone_that_hangs_ends_at_the_time_limit(fleet: Fleet, hub: Hub) -> None:
    released = threading.Event()
    hub.server.events["POST .*git-upload-pack"] = lambda: released.wait(60)
    began = time.monotonic()
    done = fleet.run("check", fleet.listed(f"{hub.server.url}/octo/zoo"), "--forge", "github", "--time-limit", "4")
    released.set()
    assert done.returncode == 2
    assert time.monotonic() - began < 40
    assert [row.status for row in fleet.rows().values()] == [TOO_LONG]


def test_too_much_memory_ends_only_that_repository(fleet: Fleet, tmp_path: Path) -> None:
    clean_repository(tmp_path / "one")
    done = fleet.run("check", fleet.listed(tmp_path / "one"), "--memory-limit", "0.005")
    assert done.returncode == 2
    (row,) = fleet.rows().values()
    assert row.status == TOO_MUCH_MEMORY
    assert "--memory-limit" in row.error


def test_too_much_disk_ends_only_that_repository(fleet: Fleet, hub: Hub) -> None:
    hub.clone.write("data.py", f"# {os.urandom(3_000_000).hex()}\n")
    hub.clone.commit()
    hub.push("main")
    released = threading.Event()
    hub.server.events["service=git-receive-pack"] = lambda: released.wait(30)
    listed = fleet.listed(f"{hub.server.url}/octo/zoo")
    done = fleet.run("pr", listed, "--forge", "github", "--api-url", hub.fake.url, "--disk-limit", "0.002")
    released.set()
    assert done.returncode == 2
    assert [row.status for row in fleet.rows().values()] == [TOO_MUCH_DISK]
    assert BRANCH not in hub.server.branches("octo/zoo")


def _running_below(temporary: str) -> list[str]:
    """Processes with a folder for temporary files below this one."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.environ().get("TMPDIR", "").startswith(f"{temporary}/"):
                found.append(" ".join(each.cmdline()))
    return found


def test_a_process_that_is_killed_is_a_failed_row(fleet: Fleet, hub: Hub) -> None:
    def kill() -> None:
        listing = subprocess.run(["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            if "graphmend_codemod.fleet.child" in line and str(os.environ["TMPDIR"]) in line:
                os.kill(int(line.split()[0]), signal.SIGKILL)
        released.wait(60)

    released = threading.Event()
    hub.server.events["POST .*git-upload-pack"] = kill
    done = fleet.run("check", fleet.listed(f"{hub.server.url}/octo/zoo"), "--forge", "github")
    left = _running_below(os.environ["TMPDIR"])
    released.set()
    assert not left, "its git would write into a folder that has been removed"
    assert done.returncode == 2
    (row,) = fleet.rows().values()
    assert (row.status, row.error) == (FAILED, "its process was ended by signal 9")


def test_the_report_is_one_page_and_json(fleet: Fleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken_repository(tmp_path / "c/<script>alert(1)<")
    declined = empty_repository(tmp_path / "c/declined")
    declined.write("model.py", BROKEN.replace("y = y * 2", "y = print(y)"))
    declined.commit()
    fleet.run("check", tmp_path / "c")
    page, data = tmp_path / "page.html", tmp_path / "fleet.json"
    arguments = ["fleet", "report", "--results", str(fleet.results), "--html", str(page), "--json", str(data)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("2 repositories, ")
    text = page.read_text()
    assert "<script>alert" not in text
    assert "What blocks most" in text
    assert "Content-Security-Policy" in text
    assert "http" not in text.replace("http-equiv", "")
    document = json.loads(data.read_text())
    assert document["totals"]["repositories"] == 2
    assert {found["repositories"] for found in document["blocking"]} == {1}


def test_reasons_that_differ_in_names_alone_are_one_kind() -> None:
    left = (("GM101: `a` has 2 elements", 2), ("GM101: `b.c` has 12 elements", 3), ("GM102: `a` has 2 elements", 1))
    rows = [Row("one", "one", "check", "findings", left=left), Row("two", "two", "check", "findings", left=left[:1])]
    found = [(str(one), one.sites, one.repositories) for one in blocking(rows)]
    assert found == [("GM101: `a` has 2 elements and 1 like it", 7, 2), ("GM102: `a` has 2 elements", 1, 1)]


def test_a_list_that_is_not_there_is_told(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "check", str(fleet.folder / "nothing.txt"), "--results", str(fleet.results)]) == 2
    assert "nothing.txt" in capsys.readouterr().err


def test_the_last_words_of_a_process_are_told_however_much_it_wrote(tmp_path: Path) -> None:
    words = tmp_path / "stderr"
    with words.open("wb") as file:
        file.truncate(2 << 40)  # more than any memory holds
        file.seek(0, os.SEEK_END)
        file.write(b"\nOSError: https://me:ghp_secret@forge.example.org is away\n")
    order = Order("zoo", "/zoo", Options("check"), tokens=(("GITHUB_TOKEN", "ghp_secret"),))
    told = limits._last_words(1, words, order)
    assert told == "its process ended with code 1: OSError: https://forge.example.org is away"
