"""Of a repository on a forge only what can matter is fetched, and with a cache only what is new."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from graphmend_codemod.forge import objects
from graphmend_codemod.forge.location import locate
from graphmend_codemod.forge.sources import SPARSE
from graphmend_codemod.repository.worktree import is_source
from tests.fleet.tools import Fleet
from tests.forge.github_fake import Repo
from tests.forge.tools import BRANCH, Hub, adopt
from tests.repository.tools import BROKEN, Repository, broken_repository, run


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet without repositories."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)


def add_data(repository: Repository) -> None:
    """A hundred files of data, of which no one alone is large."""
    for number in range(100):
        repository.write(f"data/{number}.bin", os.urandom(20_000))
    repository.commit("Add data")


def test_a_pull_request_fetches_no_data_and_commits_as_if_it_had(hub: Hub, tmp_path: Path) -> None:
    hub.clone.write("odd.py/data.bin", b"in a folder with the name of a file")
    (hub.clone.folder / "zoo/link.py").symlink_to("model.py")
    hub.clone.write("zoo/.gitattributes", "*.py text eol=crlf\n*.bin -text\n")
    hub.clone.write(".gitmodules", '[submodule "x"]\n\tpath = x\n\turl = ../x\n')
    add_data(hub.clone)
    hub.push("main")
    before = hub.server.sent
    ran = hub.pr()
    assert (ran.code, ran.err) == (0, ""), ran
    assert hub.server.sent - before < 200_000
    assert hub.server.git("octo/zoo", "diff", "--name-only", "main", BRANCH) == "zoo/model.py"
    hub.server.git("octo/zoo", "fsck", "--strict")
    # The same commits as with every file at hand.
    run(hub.clone, "--branch", "whole", "--no-evaluate")
    assert hub.server.git("octo/zoo", "rev-parse", f"{BRANCH}^{{tree}}") == hub.clone.git("rev-parse", "whole^{tree}")
    hub.clone.write("zoo/second.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    assert hub.pr().out.startswith("updated")
    assert hub.pr().out.startswith("unchanged")


def test_a_check_with_a_cache_fetches_only_what_is_new(fleet: Fleet, hub: Hub, tmp_path: Path) -> None:
    hub.clone.write("zoo/large.py", f"# {os.urandom(100_000).hex()}\n{BROKEN}")
    add_data(hub.clone)
    hub.push("main")
    second = Repository(tmp_path / "fork")
    hub.clone.git("clone", "--quiet", str(hub.clone.folder), str(second.folder))
    second.write("zoo/more.py", BROKEN)
    second.commit()
    second.git("remote", "remove", "origin")
    adopt(hub.server, "ada/zoo", second)
    cache = tmp_path / "cache"

    def check(path: str) -> tuple[int, int]:
        before = hub.server.sent
        listed = fleet.listed(f"{hub.server.url}/{path}")
        done = fleet.run("check", listed, "--forge", "github", "--object-cache", cache)
        assert done.returncode == 1, done
        (row,) = fleet.rows().values()
        return row.sites, hub.server.sent - before

    sites, sent = check("octo/zoo")
    assert sites == 4
    assert 100_000 < sent < 400_000
    sites, sent = check("octo/zoo")
    assert (sites, sent < 10_000) == (4, True), sent
    sites, sent = check("ada/zoo")
    assert (sites, sent < 20_000) == (6, True), sent
    hub.clone.write("zoo/third.py", BROKEN)
    hub.clone.commit()
    hub.push("main")
    sites, sent = check("octo/zoo")
    assert (sites, sent < 20_000) == (6, True), sent


@pytest.mark.slow
def test_pull_requests_share_the_cache(fleet: Fleet, hub: Hub, tmp_path: Path) -> None:
    second = broken_repository(tmp_path / "second")
    adopt(hub.server, "ada/zoo", second)
    hub.fake.repos["ada/zoo"] = Repo("ada/zoo")
    listed = fleet.listed(f"{hub.server.url}/octo/zoo", f"{hub.server.url}/ada/zoo")
    options = ("--forge", "github", "--api-url", hub.fake.url, "--object-cache", tmp_path / "cache")
    for _ in range(2):
        done = fleet.run("pr", listed, *options)
        assert done.returncode == 0, done
    assert [len(hub.fake.repos[name].pulls) for name in ("octo/zoo", "ada/zoo")] == [1, 1]
    assert len(list((tmp_path / "cache").glob("*.git"))) == 1


def test_a_store_begins_again_when_it_is_full_and_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_MOST_PACKS", 1)
    location, cache = locate("https://github.com/octo/zoo"), tmp_path / "cache"
    with objects.borrowed(cache, location) as store:
        (store.folder / "objects/pack/pack-1.idx").write_bytes(b"")
        with objects.borrowed(cache, location) as same:
            assert (same.folder / "objects/pack/pack-1.idx").exists()
    with objects.borrowed(cache, location) as again:
        assert not (again.folder / "objects/pack/pack-1.idx").exists()
    assert sorted(path.suffix for path in cache.iterdir()) == [".git", ".lock"]


def test_what_killed_processes_left_in_a_cache_is_removed(tmp_path: Path) -> None:
    for name, age in (("new-dead", 7200), ("old-dead", 7200), ("new-alive", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pack").write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    with objects.borrowed(tmp_path, locate("https://github.com/octo/zoo")):
        pass
    assert sorted(path.name for path in tmp_path.glob("*-*")) == ["new-alive"]


def test_forks_share_a_store_and_hosts_do_not(tmp_path: Path) -> None:
    names = ("https://github.com/octo/zoo", "https://github.com/ada/Zoo.git", "https://gitlab.com/octo/zoo")
    folders = []
    for name in names:
        with objects.borrowed(tmp_path, locate(name)) as store:
            folders.append(store.folder)
    assert folders[0] == folders[1] != folders[2]


def test_the_sparse_checkout_names_the_same_files(tmp_path: Path) -> None:
    paths = "a.py b/c.pyi pyproject.toml x/setup.cfg requirements.txt requirements-dev.txt requirements/dev.txt".split()
    assert all(is_source(path) for path in paths)
    others = "a.txt data/x.bin b/readme.md weights.pt Makefile .gitattributes py".split()
    assert not any(is_source(path) for path in others)
    repository = broken_repository(tmp_path / "r")
    for path in (*paths, *others):
        repository.write(path, "x\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "--no-cone", *SPARSE)
    listing = repository.git("ls-files", "-t").splitlines()
    assert {line[2:] for line in listing if line[0] == "S"} == set(others)
