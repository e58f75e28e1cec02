"""Module names from where files stand, and files from names."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend_codemod.project.index.modules import PackageLayout
from tests.project.tools import write


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("pkg/__init__.py", "pkg"),
        ("pkg/sub/model.py", "pkg.sub.model"),
        ("src/lib/__init__.py", "lib"),
        ("src/lib/model.py", "lib.model"),
        ("src/single.py", "single"),
        ("scripts/train.py", "scripts.train"),
        ("setup.py", "setup"),
        ("examples/v1.2/run.py", "examples.v1_2.run"),
    ],
)
def test_names_follow_the_packages(tmp_path: Path, path: str, name: str) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "src/lib/__init__.py": "", path: ""})
    assert PackageLayout(tmp_path).name(path) == name


def test_two_files_never_share_a_name(tmp_path: Path) -> None:
    files = [
        "a/src/pkg/__init__.py",
        "a/src/pkg/m.py",
        "b/src/pkg/__init__.py",
        "b/src/pkg/m.py",
        "m.py",
        "m/__init__.py",
    ]
    write(tmp_path, dict.fromkeys(files, ""))
    layout = PackageLayout(tmp_path, files)
    names = [layout.name(path) for path in files]
    assert len(set(names)) == len(files)
    assert [layout.path(name) for name in names] == files


def test_a_root_inside_a_package_keeps_the_packages_name(tmp_path: Path) -> None:
    write(tmp_path, {"outer/__init__.py": "", "outer/inner/__init__.py": "", "outer/inner/m.py": ""})
    layout = PackageLayout(tmp_path / "outer" / "inner")
    assert layout.name("m.py") == "outer.inner.m"
    assert layout.name("__init__.py") == "outer.inner"
    assert layout.locate("outer.inner.m", "m.py") == "m.py"


def test_a_script_finds_the_module_beside_it(tmp_path: Path) -> None:
    write(tmp_path, {"tools/run.py": "", "tools/helper.py": "", "helper.py": ""})
    layout = PackageLayout(tmp_path)
    assert layout.locate("helper", "tools/run.py") == "tools/helper.py"
    assert layout.locate("helper", "other.py") == "helper.py"


def test_what_is_not_in_the_project_is_not_found(tmp_path: Path) -> None:
    write(tmp_path, {"pkg/__init__.py": "", "data/file.txt": ""})
    layout = PackageLayout(tmp_path)
    assert layout.locate("torch", "pkg/m.py") is None
    assert layout.locate("data", "pkg/m.py") is None


def test_relative_imports_count_dots_from_the_file(tmp_path: Path) -> None:
    write(tmp_path, {"p/__init__.py": "", "p/a.py": "", "p/q/__init__.py": "", "p/q/b.py": ""})
    layout = PackageLayout(tmp_path)
    assert layout.relative(2, ["a"], "p/q/b.py") == "p/a.py"
    assert layout.relative(1, [], "p/q/b.py") == "p/q/__init__.py"
    assert layout.relative(4, ["a"], "p/q/b.py") is None
