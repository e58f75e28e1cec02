"""No command that a repository's own settings name is run, whatever the setting is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_codemod.cli.main import main
from graphmend_codemod.core.settings import load_settings
from graphmend_codemod.fleet.jobs import Options, Order
from graphmend_codemod.fleet.snapshot import snapshot
from graphmend_codemod.migrate.migration import MigrationError, MigrationOptions, migrate
from graphmend_codemod.repository.command_settings import CONNECTING, SWITCHED_OFF, hardening
from graphmend_codemod.repository.git import OVERRIDES, Git, RepositoryError
from tests.repository.tools import BROKEN, Repository, empty_repository, run

# What runs the command of a setting when git is asked without care; the setting's name is the key.
BAITS: dict[str, tuple[str, ...]] = {
    "core.fsmonitor": ("status",),
    "core.pager": ("-p", "log", "-1"),
    "pager.log": ("log", "-1"),
    "core.editor": ("commit", "--amend"),
    "sequence.editor": ("rebase", "--interactive", "--root"),
    "alias.trap": ("trap",),
    "diff.external": ("diff", "HEAD~1"),
    "diff.e=vil.command": ("diff", "HEAD~1"),
    "diff.e=vil.textconv": ("diff", "HEAD~1"),
    "merge.e=vil.driver": ("merge", "side"),
    "filter.e=vil.clean": ("hash-object", "--path=zoo/model.py", "zoo/model.py"),
    "filter.e=vil.smudge": ("checkout-index", "--force", "--all"),
    "filter.e=vil.process": ("checkout-index", "--force", "--all"),
    "gpg.program": ("commit", "--allow-empty", "--gpg-sign", "--message=x"),
    "gpg.ssh.program": ("-c", "gpg.format=ssh", "commit", "--allow-empty", "--gpg-sign=key::x", "--message=x"),
    "gpg.ssh.defaultkeycommand": ("-c", "gpg.format=ssh", "commit", "--allow-empty", "--gpg-sign", "--message=x"),
    "trailer.e=vil.command": ("interpret-trailers", "--trailer", "e=vil=x"),
    "tar.e=vil.command": ("archive", "--format=e=vil", "HEAD"),
    "difftool.e=vil.cmd": ("difftool", "--no-prompt", "--tool=e=vil", "HEAD~1"),
}


def set_trap(repository: Repository, name: str, marker: Path) -> None:
    """Let a setting run a script that touches a file."""
    script = marker.with_suffix(".sh")
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat \"$0\"\nexit 1\n")
    script.chmod(0o755)
    # `git config` would refuse none of these, but writes slowly when there are many.
    section, _, key = name.rpartition(".")
    section, _, middle = section.partition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    value = f"!{script}" if section == "alias" else str(script)
    with (repository.folder / ".git/config").open("a") as config:
        config.write(f"{head}\n\t{key} = {value}\n")


@pytest.fixture
def attributed(repository: Repository) -> Repository:
    """Two commits that differ, a branch that conflicts, and attributes that name drivers."""
    repository.write(".git/info/attributes", "* filter=e=vil diff=e=vil merge=e=vil\n")
    repository.git("branch", "side")
    repository.write("zoo/model.py", f"{BROKEN}# more\n")
    repository.commit()
    repository.git("checkout", "--quiet", "side")
    repository.write("zoo/model.py", f"# less\n{BROKEN}# other\n")
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    return repository


def on_a_terminal(repository: Repository, command: tuple[str, ...], environment: dict[str, str]) -> None:
    """Run git where it may use a pager."""
    screen, terminal = os.openpty()
    try:
        subprocess.run(
            ["git", "-C", str(repository.folder), *command],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            check=False,
            timeout=20,
        )
    finally:
        os.close(terminal)
        os.close(screen)


@pytest.mark.parametrize("name", BAITS)
def test_a_setting_that_git_would_run_is_switched_off(attributed: Repository, tmp_path: Path, name: str) -> None:
    """The same command twice: as anybody calls git, where the trap snaps, and as we do."""
    marker = tmp_path / "marker"
    set_trap(attributed, name, marker)
    same = Repository(tmp_path / "same")
    shutil.copytree(attributed.folder, same.folder)
    options = tuple(option for value in OVERRIDES for option in ("-c", value))
    on_a_terminal(attributed, (*options, *BAITS[name]), Git(attributed.folder).environment)
    assert not marker.exists()
    on_a_terminal(same, BAITS[name], {})
    assert marker.exists(), f"git does not run {name} here, so this test shows nothing"


def test_a_migration_runs_none_of_them(attributed: Repository, tmp_path: Path) -> None:
    markers = {name: tmp_path / f"marker-{number}" for number, name in enumerate(BAITS)}
    for name, marker in markers.items():
        set_trap(attributed, name, marker)
    hook = attributed.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch '{tmp_path}/hooked'\n")
    hook.chmod(0o755)
    assert run(attributed, "--branch", "mend", "--no-evaluate") < 2
    assert attributed.subjects("mend", "main")
    assert [name for name, marker in markers.items() if marker.exists()] == []
    assert not (tmp_path / "hooked").exists()


def test_a_setting_for_new_work_trees_alone_is_switched_off_too(repository: Repository, tmp_path: Path) -> None:
    """In the checkout it is not there; in a linked work tree, a condition includes it."""
    marker = tmp_path / "marker"
    repository.write("data.bin", "x")
    repository.write(".gitattributes", "* filter=evil\n")
    repository.commit()
    repository.write(".git/more", f'[filter "evil"]\n\tsmudge = "touch \'{marker}\'; cat"\n')
    repository.git("config", "includeIf.gitdir:**/worktrees/**.path", "more")
    repository.git("config", "remote.none.promisor", "true")  # a repository that is checked out in git's own way
    assert run(repository, "--branch", "mend", "--no-evaluate") < 2
    assert not marker.exists()


@pytest.fixture
def partial(repository: Repository, tmp_path: Path) -> Repository:
    """A clone that lacks all files."""
    folder = tmp_path / "partial"
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = ("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{repository.folder}", str(folder))
    repository.git(*clone)
    return Repository(folder)


def migrated(repository: Repository) -> None:
    migrate(MigrationOptions(repository.folder, load_settings, branch="mend", evaluate=False, cache=False))


def looked_at(repository: Repository) -> None:
    order = Order("partial", str(repository.folder), Options("check"))
    snapshot(order, repository.folder.parent / "snapshot")


@pytest.mark.parametrize("work", [migrated, looked_at], ids=["migrate", "fleet check"])
def test_missing_files_are_fetched(partial: Repository, work: Callable[[Repository], None]) -> None:
    work(partial)


@pytest.mark.parametrize("work", [migrated, looked_at], ids=["migrate", "fleet check"])
@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("remote.origin.uploadpack", None),
        ("core.sshCommand", "ssh://localhost/x"),
        ("core.gitProxy", "git://localhost/x"),
        ("protocol.ext.allow", "ext::sh -c touch% MARKER"),
        ("core.alternateRefsCommand", None),
    ],
)
def test_no_command_by_which_a_repository_connects_is_run(
    partial: Repository, tmp_path: Path, name: str, url: str | None, work: Callable[[Repository], None]
) -> None:
    marker, script = tmp_path / "marker", tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\nexec git-upload-pack \"$@\"\n")
    script.chmod(0o755)
    partial.git("config", name, "always" if name.startswith("protocol") else str(script))
    if url is not None:
        partial.git("config", "remote.origin.url", url.replace("MARKER", str(marker)))
    if "alternate" in name:
        other = empty_repository(tmp_path / "other", "--bare")
        (partial.folder / ".git/objects/info/alternates").write_text(f"{other.folder}/objects\n")
    with pytest.raises(
        (MigrationError, RepositoryError), match="cannot be fetched, since the repository's own"
    ) as told:
        work(partial)
    assert "\n" not in str(told.value)
    assert not marker.exists()
    subprocess.run(["git", "-C", str(partial.folder), "show", "HEAD:zoo/model.py"], capture_output=True, check=False)
    assert marker.exists(), f"git does not run {name} here, so this test shows nothing"


def test_a_check_does_not_fetch_what_a_sparse_index_lacks(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To list files, git expands a sparse index, for which it may need a folder that it has to fetch."""
    marker, script, folder = tmp_path / "marker", tmp_path / "script", tmp_path / "sparse"
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\nexec git-upload-pack \"$@\"\n")
    script.chmod(0o755)
    repository.write("other/deep/model.py", BROKEN)
    repository.commit()
    repository.git("clone", "--quiet", "--no-checkout", f"file://{repository.folder}", str(folder))
    clone = Repository(folder)
    clone.git("sparse-checkout", "set", "--cone", "--sparse-index", "zoo")
    clone.git("checkout", "--quiet", "main")
    (pack,) = (folder / ".git/objects/pack").glob("*.pack")
    moved = pack.rename(tmp_path / "pack")
    with moved.open("rb") as objects:
        subprocess.run(["git", "-C", str(folder), "unpack-objects", "-q"], stdin=objects, check=True)
    lacking = clone.git("rev-parse", "main:other")
    (folder / ".git/objects" / lacking[:2] / lacking[2:]).unlink()
    for name, value in (("promisor", "true"), ("partialclonefilter", "tree:0"), ("uploadpack", str(script))):
        clone.git("config", f"remote.origin.{name}", value)
    same = tmp_path / "same"
    shutil.copytree(folder, same)
    main(["check", str(folder), "--no-cache", "--jobs", "1"])
    assert "zoo/model.py" in capsys.readouterr().out
    assert not marker.exists()
    subprocess.run(["git", "ls-files", "--others", "--cached"], cwd=same, capture_output=True, check=False)
    assert marker.exists(), "git fetches nothing here, so this test shows nothing"


def test_a_users_own_settings_for_connecting_stay(partial: Repository) -> None:
    with open(f"{os.environ['HOME']}/.gitconfig", "a") as config:
        config.write('[core]\n\tsshCommand = ssh -4\n[credential]\n\thelper = store\n[http]\n\tproxy = ""\n')
    assert Git(partial.folder).hardening.forbidding == ()
    migrated(partial)


def test_every_pattern_is_a_name_as_git_writes_it() -> None:
    """Sections and keys are listed in lower case: a pattern with capitals would never match."""
    patterns = [pattern for pattern, _ in SWITCHED_OFF] + list(CONNECTING)
    assert [pattern for pattern in patterns if pattern != pattern.lower()] == []
    assert hardening([("local", "credential.https://x.example.helper")]).forbidding


def test_variables_of_the_user_are_kept() -> None:
    made = hardening([("local", "filter.e=vil.clean")]).environment({"GIT_CONFIG_COUNT": "2"})
    assert made["GIT_CONFIG_COUNT"] == "3"
    assert (made["GIT_CONFIG_KEY_2"], made["GIT_CONFIG_VALUE_2"]) == ("filter.e=vil.clean", "")
