"""Modules of the repository that is looked at are not imported, whatever their names and wherever one stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.tools import BROKEN, CHECKOUT, Repository, empty_repository, isolate

ENOUGH_FOR_WORKERS = 70
NAMES = "ast joblib json graphmend_codemod numpy pickle random tempfile usercustomize"
_CLEAN = "import sys; sys.path[:] = [folder for folder in sys.path if folder]; "
START = f"{_CLEAN}from graphmend_codemod.cli.main import main; sys.exit(main())"


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    """A repository whose modules have the names of what Python, joblib and graphmend import, and leave a mark."""
    isolate(monkeypatch, tmp_path)
    repository = empty_repository(tmp_path / "hostile")
    mark = tmp_path / "imported"
    for name in NAMES.split():
        repository.write(f"{name}.py", f"open({str(mark)!r}, 'a').write('{name} ')\n")
    for number in range(ENOUGH_FOR_WORKERS):
        repository.write(f"zoo/model_{number}.py", BROKEN)
    repository.commit()
    return repository


@pytest.mark.parametrize("options", [("check", "."), ("fix", "."), ("migrate", ".", "--no-evaluate")])
def test_no_module_of_the_current_folder_is_imported(hostile: Repository, tmp_path: Path, options: list[str]) -> None:
    command = [sys.executable, "-c", START, *options, "--jobs", "2", "--no-cache"]
    done = subprocess.run(command, cwd=hostile.folder, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0 if "migrate" in options else 1, False), done
    assert not (tmp_path / "imported").exists()


def test_as_a_module_of_python_it_imports_no_other_of_the_current_folder(hostile: Repository, tmp_path: Path) -> None:
    (hostile.folder / "graphmend_codemod.py").unlink()  # Python itself would run it
    command = [sys.executable, "-m", "graphmend_codemod", "check", ".", "--jobs", "2", "--no-cache"]
    done = subprocess.run(command, cwd=hostile.folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done
    assert not (tmp_path / "imported").exists()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="`python -P` is younger")
def test_with_p_python_itself_imports_none_either(hostile: Repository, tmp_path: Path) -> None:
    """Without it, `runpy` and what that imports come from the current folder, before a line of graphmend runs."""
    mark = tmp_path / "imported"
    for name in ("contextlib", "runpy", "typing", "argparse", "re", "graphmend_codemod/__init__"):
        hostile.write(f"{name}.py", f"open({str(mark)!r}, 'a').write('{name} ')\n")
    command = [sys.executable, "-P", "-m", "graphmend_codemod", "check", ".", "--jobs", "2", "--no-cache"]
    done = subprocess.run(command, cwd=hostile.folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done
    assert not mark.exists()


def test_the_installed_command_imports_nothing_of_the_current_folder(hostile: Repository, tmp_path: Path) -> None:
    """The entry point of pyproject.toml, as pip writes it into a script."""
    for name in ("contextlib", "runpy", "typing", "argparse", "re"):
        hostile.write(f"{name}.py", f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n")
    settings = (CHECKOUT / "pyproject.toml").read_text()
    (entry,) = re.findall(r'^\[project\.scripts\]\ngraphmend = "(.*)"$', settings, re.MULTILINE)
    module, _, function = entry.partition(":")
    script = tmp_path / "bin/graphmend"
    script.parent.mkdir()
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    command = [sys.executable, str(script), "check", ".", "--jobs", "2", "--no-cache"]
    done = subprocess.run(command, cwd=hostile.folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done
    assert not (tmp_path / "imported").exists()


def test_the_module_for_all_repos_imports_none_of_a_clone(hostile: Repository, tmp_path: Path) -> None:
    pytest.importorskip("all_repos")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CHECKOUT), os.environ["PYTHONPATH"]))}
    script = f"{_CLEAN}from hooks.all_repos_graphmend import apply_fix; apply_fix()"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=hostile.folder, env=environment, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done
    assert not (tmp_path / "imported").exists()
    assert hostile.git("status", "--porcelain").count("zoo/model_") == ENOUGH_FOR_WORKERS


def test_a_fleet_imports_nothing_of_the_folder_that_it_is_started_in(hostile: Repository, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{hostile.folder}\n")
    command = [sys.executable, "-c", START, "fleet", "check", str(tmp_path / "list.txt")]
    command += ["--results", str(tmp_path / "rows.sqlite")]
    done = subprocess.run(command, cwd=hostile.folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done
    assert not (tmp_path / "imported").exists()
