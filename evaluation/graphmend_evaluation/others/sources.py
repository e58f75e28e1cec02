"""Folders of code: each package as it is published."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from graphmend_evaluation.others.builders import Package, pip_requirement, repository
from graphmend_evaluation.paper.prepare import PrepareError

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
