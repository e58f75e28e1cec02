"""Without models to run, a migration checks out only what it reads, and loses nothing from what it commits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from graphmend_codemod.core.findings import Finding
from graphmend_codemod.core.settings import Settings, load_settings
from graphmend_codemod.engine.api import CheckResult
from graphmend_codemod.evaluation.port import Measured, RecordedModel, Sites, Trees, Wanted
from graphmend_codemod.migrate.migration import MigrationError, MigrationOptions, migrate
from graphmend_codemod.migrate.per_rule import Engine
from graphmend_codemod.migrate.shared_session import reading_once
from graphmend_codemod.repository.checkout import open_checkout, resolve_commit
from graphmend_codemod.repository.worktree import is_source, temporary_folder, worktree
from tests.repository.tools import BROKEN, Repository, broken_repository, run, untouched

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 1000000000\n"
IMPORTER = "from torch import nn\n\nfrom linked.model import Model as Base\n\n\nclass Model(Base):\n    pass\n"


@pytest.fixture
def odd(repository: Repository, tmp_path: Path) -> Repository:
    """A repository with everything that git can hold beside Python files."""
    other = broken_repository(tmp_path / "other")
    repository.git("submodule", "--quiet", "add", str(other.folder), "vendored-module")
    for name in ("large.bin", "new\nline.bin", "-x", " space ", "[a-z]*?.bin", "odd.py/in.bin"):
        repository.write(f"data/{name}", os.urandom(5_000))
    repository.write("data/Name.txt", "one")
    repository.write("data/name.txt", "two")
    repository.write("zoo/Model.py", "upper = 1\n")
    repository.write("bin/run.sh", "#!/bin/sh\n").chmod(0o755)
    repository.write("weights.safetensors", POINTER)
    repository.write(".gitattributes", "*.safetensors filter=lfs diff=lfs merge=lfs -text\n*.txt text eol=crlf\n")
    repository.write("requirements.txt", "torch>=2.6\n")
    (repository.folder / "linked").symlink_to("zoo")
    (repository.folder / "zoo/link.py").symlink_to("model.py")
    (repository.folder / "outside").symlink_to("/etc")
    (repository.folder / "dangling").symlink_to("nowhere\nat all")
    repository.write("importer.py", IMPORTER)
    repository.commit()
    return repository


def bytes_below(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of every file and link."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in (*names, *(one for one in folders if os.path.islink(os.path.join(folder, one)))):
            path = Path(folder, name)
            if path != root / ".git":
                data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
                found[path.relative_to(root).as_posix()] = (stat.S_IMODE(path.lstat().st_mode), data)
    return found


def test_only_sources_and_links_are_on_disk_and_the_rest_can_follow(odd: Repository) -> None:
    checkout = open_checkout(odd.folder)
    commit = resolve_commit(checkout, "HEAD")
    with untouched(odd), temporary_folder() as folder, worktree(checkout, commit, folder, only=is_source) as tree:
        here = set(bytes_below(tree.root))
        assert here == {
            *("zoo/__init__.py", "zoo/model.py", "zoo/Model.py", "zoo/clean.py", "zoo/link.py", "importer.py"),
            *("requirements.txt", "linked", "outside", "dangling"),
        }
        assert here.isdisjoint(tree.missing)
        assert tree.submodules == ("vendored-module",)
        (folder / "whole").mkdir()
        with worktree(checkout, commit, folder / "whole") as whole:
            assert not whole.missing
            assert whole.entries == tree.entries
            assert not tree.complete().missing
            assert bytes_below(tree.root) == bytes_below(whole.root)


def test_a_commit_differs_from_its_base_in_the_edited_files_alone(odd: Repository) -> None:
    with untouched(odd, but="mend"):
        assert run(odd, "--branch", "mend", "--no-evaluate") == 0
    changed = [line.split("\t") for line in odd.git("diff-tree", "-r", "--no-renames", "HEAD", "mend").splitlines()]
    assert [path for _, path in changed] == ["zoo/model.py"]
    assert changed[0][0].split()[:2] == [":100644", "100644"]
    listed = [odd.git("ls-tree", "-r", "--name-only", "-z", commit) for commit in ("HEAD", "mend")]
    assert listed[0] == listed[1]


def test_large_files_are_not_written_and_the_rules_see_the_same(odd: Repository) -> None:
    seen: list[tuple[set[str], tuple[Finding, ...]]] = []

    def watching(tree_of: Callable[[Settings], Path]) -> Engine:
        usual = reading_once()

        def check(paths: Sequence[Path], settings: Settings, *, jobs: int, cache: bool) -> CheckResult:
            found = usual.check(paths, settings, jobs=jobs, cache=cache)
            seen.append((set(bytes_below(tree_of(settings))), tuple(found.findings)))
            return found

        return Engine(check, usual.fix, usual.rules)

    request = MigrationOptions(odd.folder, load_settings, dry_run=True, evaluate=False, cache=False)
    migrate(request, engine=watching(lambda settings: settings.root))
    odd.git("config", "remote.none.promisor", "true")
    migrate(request, engine=watching(lambda settings: settings.root))
    assert "data/large.bin" not in seen[0][0]
    assert "data/large.bin" in seen[-1][0]
    assert [findings for _, findings in seen[: len(seen) // 2]] == [findings for _, findings in seen[len(seen) // 2 :]]


@pytest.mark.parametrize("named", ["data", "bin/run.sh", "vendored-module", "tool"])
def test_what_is_named_counts_as_there(odd: Repository, named: str) -> None:
    odd.write("tool", f"#!/usr/bin/env python\n{BROKEN}").chmod(0o755)
    odd.commit()
    done = migrate(
        MigrationOptions(odd.folder, load_settings, branch="mend", paths=(Path(named),), evaluate=False, cache=False)
    )
    assert not done.problems
    assert [commit.files for commit in done.commits] == [("tool",)] * (2 if named == "tool" else 0)
    if named == "tool":
        assert odd.git("diff", "--name-only", "HEAD", "mend") == "tool"
        assert odd.git("ls-tree", "mend", "tool").startswith("100755")


def test_a_folder_without_sources_can_be_migrated(odd: Repository) -> None:
    assert run(Repository(odd.folder / "data"), "--branch", "mend", "--no-evaluate") == 0
    with pytest.raises(MigrationError, match="nowhere: does not exist"):
        migrate(MigrationOptions(odd.folder, load_settings, paths=(Path("nowhere"),), evaluate=False))


def test_models_find_their_data(odd: Repository) -> None:
    seen: list[bool] = []

    class Looks:
        def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
            self._trees = trees

        def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
            folders = (self._trees.base, self._trees.head, self._trees.trial)
            seen.extend((folder / "data/large.bin").stat().st_size == 5_000 for folder in folders)
            return Measured()

        def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
            return ()

        def finish(self, measured: Measured) -> Measured:
            return measured

    migrate(MigrationOptions(odd.folder, load_settings, wanted=Wanted(named=("zoo.model:Model",))), measure=Looks)
    assert seen == [True, True, True]


def test_models_of_the_settings_find_their_data(odd: Repository) -> None:
    odd.write("pyproject.toml", '[tool.graphmend]\nmodels = ["zoo.model:Model"]\n')
    odd.commit()
    missing: list[bool] = []

    class Looks:
        def __init__(self, trees: Trees, wanted: Wanted, progress: Callable[[str], None]) -> None:
            missing.append(not (trees.head / "data/large.bin").exists())

        def verdict(self, sites: Sites, changed: Sequence[str]) -> Measured:
            return Measured()

        def record(self, models: Sequence[str], changed: Sequence[str]) -> tuple[RecordedModel, ...]:
            return ()

        def finish(self, measured: Measured) -> Measured:
            return measured

    migrate(MigrationOptions(odd.folder, load_settings), measure=Looks)
    assert missing == [False]
