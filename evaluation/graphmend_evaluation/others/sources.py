"""Folders of code: each package as it is published, and as `graphmend fix` leaves it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphmend_evaluation.others.builders import Package, pip_requirement, repository
from graphmend_evaluation.paper.prepare import PrepareError

FIX_TIMEOUT = 900
_SOURCE = ".graphmend-source"


def before(package: Package, folder: Path, mirrors: Path | None) -> Path:
    """The package's files in `folder`, fetched unless they are there. Raises `PrepareError`."""
    root = folder / package.name
    if (root / _SOURCE).is_file() and (root / _SOURCE).read_text(encoding="utf-8") == package.source:
        return root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    requirement = pip_requirement(package.source)
    if requirement is None:
        _from_repository(package, root, mirrors)
    else:
        _run(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-build-isolation",
              "--target", str(root), requirement], package)  # fmt: skip
    if package.removed:
        shutil.rmtree(root / package.removed, ignore_errors=True)
    (root / _SOURCE).write_text(package.source, encoding="utf-8")
    return root


def after(base: Path, root: Path, made_by: str, options: Sequence[str]) -> None:
    """Make `root` a copy of `base` that `graphmend fix` has edited; one that was `made_by` the same is kept."""
    mark = root.with_name(f"{root.name}.made-by")
    text = f"{made_by} {' '.join(options)}"
    if root.is_dir() and mark.is_file() and mark.read_text(encoding="utf-8") == text:
        return
    shutil.rmtree(root, ignore_errors=True)
    mark.unlink(missing_ok=True)
    shutil.copytree(base, root)
    _graphmend(["fix", *options, str(root)], root)
    mark.write_text(text, encoding="utf-8")


def findings(base: Path) -> list[dict[str, Any]]:
    """What `graphmend check` says of the package's files."""
    found: list[dict[str, Any]] = json.loads(_graphmend(["check", "--output-format", "json", "."], base))["findings"]
    return found


def _graphmend(arguments: Sequence[str], folder: Path) -> str:
    project = folder / "pyproject.toml"  # paths begin at the folder, wherever the work folder lies
    if not project.is_file():
        project.write_text("[tool.graphmend]\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "graphmend_codemod", arguments[0], "--no-cache", "--jobs", "1", *arguments[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=FIX_TIMEOUT,
        check=False,
    )
    if done.returncode not in (0, 1) and not done.stdout:
        raise PrepareError(f"graphmend {arguments[0]} of {folder} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def _from_repository(package: Package, root: Path, mirrors: Path | None) -> None:
    owner, name, commit = repository(package.source)
    clone = root.parent / f"{package.name}.git"
    if mirrors is not None and (mirrors / f"{owner}+{name}" / "repo").is_dir():
        clone = mirrors / f"{owner}+{name}" / "repo"
    elif not clone.is_dir():
        _git(["clone", "--quiet", "--bare", f"https://github.com/{owner}/{name}", str(clone)], package)
    archive = root.parent / f"{package.name}.tar"
    _git([f"--git-dir={clone}", "archive", "--format=tar", f"--output={archive}", commit, ":(glob)**/*.py"], package)
    with tarfile.open(archive) as files:
        files.extractall(root, filter="data")
    archive.unlink()


def _git(arguments: Sequence[str], package: Package) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(["git", *arguments], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PrepareError(f"{package.source} cannot be had: {done.stderr.strip()[-300:]}")


def _run(arguments: Sequence[str], package: Package) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PrepareError(f"{package.source} cannot be installed: {done.stderr.strip()[-300:]}")
