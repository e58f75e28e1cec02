"""Which files a run looks at."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from graphmend_codemod.core.discovery import can_matter, discover, is_generated, own_project
from graphmend_codemod.core.settings import Settings


def write(root: Path, names: Iterable[str], text: str = "import torch\n") -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def git(root: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", *identity, *arguments], cwd=root, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    return root


def found(root: Path, *paths: Path, exclude: tuple[str, ...] = ()) -> list[str]:
    return list(discover(paths, Settings(root, exclude=exclude)).files)


def test_tracked_and_untracked_files_count_and_ignored_ones_do_not(repository: Path) -> None:
    write(repository, ["tracked.py", "pkg/deep.py", "new.py", "ignored.py", "build/made.py", "notes.txt", "stub.pyi"])
    (repository / ".gitignore").write_text("ignored.py\nbuild/\n")
    git(repository, "add", "tracked.py", "pkg")
    assert found(repository) == ["new.py", "pkg/deep.py", "tracked.py"]


def test_a_deleted_file_that_git_still_tracks_is_left_out(repository: Path) -> None:
    write(repository, ["a.py", "b.py"])
    git(repository, "add", ".")
    (repository / "a.py").unlink()
    assert found(repository) == ["b.py"]


def test_names_that_git_would_quote_are_found(repository: Path) -> None:
    write(repository, ["mödel.py", "with space.py", 'quo"te.py'])
    assert found(repository) == sorted(["mödel.py", "with space.py", 'quo"te.py'])


def test_a_subfolder_is_listed_relative_to_the_root(repository: Path) -> None:
    write(repository, ["a.py", "pkg/b.py", "pkg/sub/c.py"])
    assert found(repository, repository / "pkg") == ["pkg/b.py", "pkg/sub/c.py"]


def test_a_root_below_the_top_of_the_repository_sees_itself_only(repository: Path) -> None:
    write(repository, ["a.py", "inner/b.py"])
    assert found(repository / "inner") == ["b.py"]


def test_submodules_are_not_entered(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    write(other, ["inside.py"])
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "x")
    write(repository, ["a.py"])
    git(repository, "submodule", "add", "-q", str(other), "sub")
    assert found(repository) == ["a.py"]


def test_the_environment_of_a_hook_does_not_mislead(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repository, ["a.py", "pkg/b.py"])
    git(repository, "add", ".")
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/other-index")
    assert found(repository, repository / "pkg") == ["pkg/b.py"]


def test_without_git_folders_are_walked(tmp_path: Path) -> None:
    write(tmp_path, ["a.py", "pkg/b.py", ".hidden/c.py", "node_modules/d.py"])
    assert found(tmp_path) == ["a.py", "pkg/b.py"]


def test_without_the_git_command_folders_are_walked(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repository, ["a.py"])
    monkeypatch.setenv("PATH", "")
    assert found(repository) == ["a.py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, ["pkg/a.py"])
    write(outside, ["b.py"])
    (root / "pkg" / "loop").symlink_to(root, target_is_directory=True)
    (root / "away").symlink_to(outside, target_is_directory=True)
    (root / "twin.py").symlink_to(root / "pkg" / "a.py")
    (root / "broken.py").symlink_to(root / "nowhere.py")
    assert found(root) == ["pkg/a.py"]
    git(root, "init", "-q")
    git(root, "add", ".")
    assert found(root) == ["pkg/a.py"]


def test_a_named_link_means_its_target(tmp_path: Path) -> None:
    root = write(tmp_path / "root", ["a.py"])
    write(tmp_path / "outside", ["b.py"])
    (root / "twin.py").symlink_to(root / "a.py")
    (root / "away.py").symlink_to(tmp_path / "outside" / "b.py")
    assert found(root, root / "twin.py") == ["a.py"]
    problems = discover([root / "away.py"], Settings(root)).problems
    assert [(each.path, "out of the project" in each.message) for each in problems] == [("away.py", True)]


def test_a_file_that_linked_folders_lead_to_is_named_once(tmp_path: Path) -> None:
    root = write(tmp_path / "root", ["pkg/a.py"])
    write(tmp_path / "outside", ["b.py"])
    (root / "twin").symlink_to(root / "pkg", target_is_directory=True)
    (root / "pkg" / "loop").symlink_to(root, target_is_directory=True)
    (root / "away").symlink_to(tmp_path / "outside", target_is_directory=True)
    again = (root / "twin" / "a.py", root / "pkg" / "loop" / "pkg" / "a.py", root / "twin", root / "pkg" / "a.py")
    assert found(root, *again) == ["pkg/a.py"]
    assert found(root, root / "away" / "b.py") == ["away/b.py"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("pkg", ["a.py", "other/pkg2/c.py"]),
        ("pkg/", ["a.py", "other/pkg2/c.py"]),
        ("*.py", []),
        ("other/*", ["a.py", "pkg/b.py"]),
        ("./a.py", ["other/pkg2/c.py", "pkg/b.py"]),
        ("b.py", ["a.py", "other/pkg2/c.py"]),
    ],
)
def test_excludes_hold_for_folders_and_for_named_files(tmp_path: Path, pattern: str, left: list[str]) -> None:
    names = ["a.py", "pkg/b.py", "other/pkg2/c.py"]
    write(tmp_path, names)
    assert found(tmp_path, exclude=(pattern,)) == left
    assert found(tmp_path, *(tmp_path / name for name in names), exclude=(pattern,)) == left


@pytest.mark.parametrize("folder", ["vendor", "third_party", "pkg/_vendor", ".venv/lib/site-packages", "node_modules"])
def test_vendored_folders_are_left_out_also_when_named(repository: Path, folder: str) -> None:
    write(repository, ["a.py", f"{folder}/b.py"])
    git(repository, "add", "-f", ".")
    assert found(repository) == ["a.py"]
    assert found(repository, repository / folder / "b.py") == []
    named = discover([repository / "a.py", repository / folder / "b.py"], Settings(root=repository))
    assert (named.files, named.foreign) == (("a.py",), 1)


@pytest.mark.parametrize("folder", ["build/lib", "dist", "docs/_build"])
def test_what_a_build_made_is_left_out_unless_it_is_a_package(repository: Path, folder: str) -> None:
    write(repository, ["a.py", f"{folder}/b.py"])
    git(repository, "add", "-f", ".")
    assert found(repository) == ["a.py"]
    write(repository, [f"{part}/__init__.py" for part in ("build", "dist", "docs/_build")])
    assert f"{folder}/b.py" in found(repository)


@pytest.mark.parametrize("with_git", [True, False])
def test_included_files_of_a_vendored_folder_are_looked_at(tmp_path: Path, with_git: bool) -> None:
    write(tmp_path, ["a.py", "third_party/ours/b.py", "third_party/theirs/c.py"])
    if with_git:
        git(tmp_path, "init", "-q")
    settings = Settings(tmp_path, include=("third_party/ours",))
    assert list(discover((), settings).files) == ["a.py", "third_party/ours/b.py"]
    left = settings._replace(exclude=("b.py",))
    assert list(discover((), left).files) == ["a.py"]


def test_a_root_that_stands_in_a_vendored_folder_is_read(tmp_path: Path) -> None:
    root = write(tmp_path / "site-packages" / "pkg", ["a.py"])
    assert found(root) == ["a.py"]


def test_named_files_need_no_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repository, ["a.py", "script"], "#!/usr/bin/env python3\nimport torch\n")
    write(repository, ["stub.pyi", "notes.md"])
    monkeypatch.setenv("PATH", "")
    names = ["a.py", "script", "stub.pyi", "notes.md"]
    assert found(repository, *(repository / name for name in names)) == ["a.py", "script"]


def test_a_path_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    problems = discover([tmp_path / "gone.py"], Settings(tmp_path)).problems
    assert [str(each) for each in problems] == ["gone.py: does not exist; check the path"]


@pytest.mark.parametrize(
    ("text", "matters"),
    [
        (b"import torch\n", True),
        (b"    import torch.nn as nn\n", True),
        (b"from torch import nn\n", True),
        (b"import os, torch\n", True),
        (b"class A(Base):\n    def forward(self, x): ...\n", True),
        (b"import torchvision\n", False),
        (b"# import torch\n", False),
        (b"def forwards(x): ...\n", False),
        (b"", False),
    ],
)
def test_the_look_at_the_bytes(text: bytes, matters: bool) -> None:
    assert can_matter(text) is matters


@pytest.mark.parametrize(
    ("text", "generated"),
    [
        (b"# @generated by tool\nimport torch\n", True),
        (b"# Generated by the protocol buffer compiler.  DO NOT EDIT!\n", True),
        (b"# -*- coding: utf-8 -*-\n# Generated by Django 4.2\n", True),
        (b"#    This file was automatically generated from src/transformers/models/phi3/modular_phi3.py.\n", False),
        (b'"""Text generated by models."""\n', False),
        (b"x = 1\n" * 500 + b"# @generated\n", False),
        (b"# AUTOGENERATED! DO NOT EDIT! File to edit: ../nbs/01_core.ipynb.\nimport torch\n", True),
        (b"# auto generated docs: edit them as you like\n", False),
    ],
)
def test_generated_files_are_told_by_their_first_lines(text: bytes, generated: bool) -> None:
    assert is_generated(text) is generated


VENDORED = ["vendor", "third_party", "pkg/_vendor", ".venv/lib/site-packages", "node_modules", "build"]


@pytest.mark.parametrize("folder", VENDORED)
def test_a_folder_in_a_vendored_one_is_a_project_of_its_own(repository: Path, folder: str) -> None:
    write(repository, ["a.py", f"{folder}/p/b.py", f"{folder}/p/q/c.py", f"{folder}/d.py"])
    settings = Settings(root=repository, exclude=("b.py",))
    for named in ("p", "p/q"):
        assert own_project(settings, repository / folder / named) == settings._replace(root=repository / folder / "p")
    for named in (".", folder, folder.partition("/")[0]):
        assert own_project(settings, repository / named) == settings
    included = settings._replace(include=(f"{folder}/p",))
    assert own_project(included, repository / folder / "p" / "q") == included


def test_the_innermost_vendored_folder_counts(tmp_path: Path) -> None:
    write(tmp_path, ["vendor/p/_vendor/q/a.py"])
    settings = own_project(Settings(root=tmp_path), tmp_path / "vendor/p/_vendor/q")
    assert settings.root == tmp_path / "vendor/p/_vendor/q"
