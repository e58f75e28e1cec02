"""What goes wrong with a whole run: lists that want to harm, a run that is killed, forges that leave nothing out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.fleet.answers import without_temporary_folders
from graphmend_codemod.fleet.results import Store
from graphmend_codemod.fleet.sources import SourceError, find_targets
from tests.fleet.tools import Fleet, outlive_children
from tests.forge.tools import TOKEN, Hub
from tests.repository.tools import BROKEN, CLEAN, broken_repository, empty_repository


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet without repositories."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)


def test_lines_of_a_list_are_names_and_never_commands_or_options(fleet: Fleet, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    broken_repository(fleet.folder / "good")
    lines = [
        "good",
        f"ext::sh -c touch% {marker}",
        f"--upload-pack=touch {marker}",
        "-c core.pager=x",
        "file:///etc",
        f"ssh://-oProxyCommand=touch{marker}/o/n",
        f"git@-oProxyCommand=touch{marker}:o/n",
        f"$(touch {marker})",
        f"; touch {marker}",
        "../../../../../../etc",
        "https://127.0.0.1:9/../../etc/passwd",
        "http://example.invalid/octo/zoo",
        "a\tb\x1b[31m\u202e",
        "x" * 5000,
        "'); DROP TABLE repositories; --",
    ]
    done = fleet.run("check", fleet.listed(*lines), "--git-timeout", "5", "--jobs", "4")
    assert done.returncode == 2
    assert not marker.exists()
    rows = fleet.rows()
    assert len(rows) == len(lines)
    assert [name for name, row in rows.items() if not row.failed] == ["good"]
    assert all(len(row.error) <= 500 for row in rows.values())
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout + done.stderr
    page = tmp_path / "page.html"
    assert main(["fleet", "report", "--results", str(fleet.results), "--html", str(page)]) == 0
    assert "\x1b" not in page.read_text()
    assert "\u202e" not in page.read_text()


@pytest.mark.parametrize(
    "line", [f"https://{TOKEN}@github.com/o/n", f"https://bot:{TOKEN}@h.org/o/n", f"ssh://git:{TOKEN}@h.org/o/n"]
)
def test_a_secret_in_a_list_is_refused_before_it_is_written_anywhere(
    fleet: Fleet, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # One with a slash is no user of an address at all.
    listed = fleet.listed("good", line.replace("/not", ""))
    assert main(["fleet", "check", str(listed), "--results", str(fleet.results)]) == 2
    told = capsys.readouterr().err
    assert "repositories.txt:3: an address must not contain a token" in told
    assert "ghp_" not in told
    assert not fleet.results.exists()


def test_addresses_of_all_repos_lose_their_secrets(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "all-repos.json").write_text(json.dumps({"output_dir": "output"}))
    found = tmp_path / "output/repos_filtered.json"
    found.write_text(json.dumps({"o/n": "https://bot:secret@github.com/o/n"}))
    (target,) = find_targets(tmp_path / "all-repos.json")
    assert target.location == "https://github.com/o/n"
    for odd in ("[]", "3", '{"o/n"', "null"):
        found.write_text(odd)
        with pytest.raises(SourceError, match="is not an all-repos configuration"):
            find_targets(tmp_path / "all-repos.json")


def test_a_list_that_is_no_text_is_told(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    (fleet.folder / "list.txt").write_bytes(b"\xff\xfe\x00")
    assert main(["fleet", "check", str(fleet.folder / "list.txt"), "--results", str(fleet.results)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_that_is_killed_leaves_no_process_and_the_next_one_cleans_up(fleet: Fleet, tmp_path: Path) -> None:
    for number in range(4):
        repository = empty_repository(tmp_path / f"r/{number}")
        repository.write("model.py", CLEAN)
        repository.commit()
    running = subprocess.Popen(
        fleet.command("check", tmp_path / "r", "--jobs", "1"), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    kept = len(fleet.rows())
    assert 1 <= kept < 4
    (Path(os.environ["TMPDIR"]) / "graphmend-fleet-killed0").mkdir()  # before it had a lock
    outlive_children()
    done = fleet.run("check", tmp_path / "r", "--resume")
    assert done.returncode == 0, done
    assert f"{kept} of 4 are done already" in done.stderr


@pytest.mark.parametrize("action", ["check", "pr"])
def test_a_forge_that_leaves_nothing_out_is_used_all_the_same(fleet: Fleet, hub: Hub, action: str) -> None:
    hub.server.git("octo/zoo", "config", "uploadpack.allowFilter", "false")
    hub.clone.write("data.bin", os.urandom(100_000))
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    listed = fleet.listed(f"{hub.server.url}/octo/zoo")
    api = ("--api-url", hub.fake.url) if action == "pr" else ()
    done = fleet.run(action, listed, "--forge", "github", *api)
    assert done.returncode == (1 if action == "check" else 0), done
    (row,) = fleet.rows().values()
    assert row.sites == 4


@pytest.mark.parametrize("action", ["check", "pr"])
def test_data_counts_neither_as_disk_nor_as_memory(fleet: Fleet, hub: Hub, action: str) -> None:
    """As with a repository of a gigabyte, in small: the limit is a tenth of the data."""
    hub.clone.write("weights.bin", os.urandom(12_000_000))
    hub.clone.write("blob.py/weights.txt", b"in a folder with the name of a file")
    hub.clone.commit()
    hub.push("main")
    api = ("--api-url", hub.fake.url) if action == "pr" else ()
    listed = fleet.listed(f"{hub.server.url}/octo/zoo")
    done = fleet.run(action, listed, "--forge", "github", *api, "--disk-limit", "0.0012")
    assert done.returncode == (1 if action == "check" else 0), done
    assert hub.server.sent < 1_000_000


def test_a_link_to_a_clone_and_another_way_to_write_an_address_are_no_second_repository(tmp_path: Path) -> None:
    repository = broken_repository(tmp_path / "one")
    (tmp_path / "link").symlink_to(repository.folder)
    lines = ["one", "link", "one/.git", "one/.", "https://h.example/o/n", "https://h.example/o/n.git", "other"]
    (tmp_path / "list.txt").write_text("\n".join(lines))
    assert [target.name for target in find_targets(tmp_path / "list.txt")] == ["one", "https://h.example/o/n", "other"]


def test_migrating_again_says_so_and_keeps_what_is_known(fleet: Fleet, tmp_path: Path) -> None:
    repository = broken_repository(tmp_path / "one")
    listed = fleet.listed(repository.folder)
    arguments = ("migrate", listed, "--branch", "mended", "--no-evaluate")
    assert fleet.run(*arguments).returncode == 0
    tip = repository.git("rev-parse", "mended")
    done = fleet.run(*arguments)
    assert done.returncode == 0, done
    (row,) = fleet.rows().values()
    assert (row.status, row.sites, row.fixed, row.error) == ("already migrated", 2, 2, "")
    assert "already migrated" in done.stdout
    repository.write("more.py", CLEAN)
    repository.commit()
    fleet.run(*arguments)
    (row,) = fleet.rows().values()
    assert "HEAD is at main" in row.remarks[0]
    store = Store(fleet.results)
    assert [past.status for _, past in store.history()] == ["migrated", "already migrated"]
    store.close()
    repository.git("update-ref", "refs/heads/mended", "HEAD")
    assert fleet.run(*arguments).returncode == 2
    (row,) = fleet.rows().values()
    assert "branch mended exists already" in row.error
    assert repository.git("rev-parse", "mended") != tip


def test_no_error_shows_a_temporary_folder(fleet: Fleet, tmp_path: Path) -> None:
    """Settings that cannot be used, in a snapshot and in a work tree."""
    repository = broken_repository(tmp_path / "one")
    repository.write("pyproject.toml", "[tool.graphmend]\nselect = 7\n")
    repository.commit()
    for action in ("check", "migrate"):
        assert fleet.run(action, fleet.listed(repository.folder)).returncode == 2
        error = next(row.error for row in fleet.rows().values() if row.action == action)
        assert "pyproject.toml" in error
        assert "graphmend-" not in error
        assert os.environ["TMPDIR"] not in error


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/tmp/graphmend-vm-abcd1234/files/one/a/b.py: bad", "a/b.py: bad"),
        ("/x/graphmend-fleet-ab12_xyz/tmp/graphmend-vm-abcd1234/one/a.py:3: bad", "a.py:3: bad"),
        ("git -C '/tmp/graphmend-vm-abcd1234/one.git' failed", "git -C 'the temporary repository' failed"),
        ("/home/me/graphmend-notes/a.py: bad", "/home/me/graphmend-notes/a.py: bad"),
    ],
)
def test_paths_of_our_copies_become_paths_of_the_repository(text: str, shown: str) -> None:
    assert without_temporary_folders(text) == shown
