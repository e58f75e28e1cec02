"""Which repositories: a list, a folder of clones, or what all-repos keeps."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path


class SourceError(Exception):
    """Repositories that cannot be listed. The text is one line: file, cause, way out."""


@dataclass(frozen=True)
class Target:
    """One repository: what people call it, and the folder of its clone or its address."""

    name: str
    location: str


def find_targets(source: Path) -> tuple[Target, ...]:
    """The repositories of `source`, without repetition.

    A folder holds clones, at any depth. A `.json` file is a configuration of all-repos: its `output_dir` is read as
    `all-repos-clone` has left it. Any other file is a list: a folder or an address a line, `#` begins a comment.
    Raises `SourceError`.
    """
    try:
        if source.is_dir():
            found = _clones(source)
        elif source.suffix == ".json":
            found = _all_repos(source)
        else:
            found = _listed(source)
    except OSError as error:
        raise SourceError(f"{error.filename or source}: {error.strerror or error}") from error
    unique = {target.location: target for target in found}
    if not unique:
        raise SourceError(f"{source}: names no repository")
    return tuple(unique.values())


def _clones(folder: Path) -> list[Target]:
    found = []
    for place, folders, files in os.walk(folder):
        bare = {"HEAD", "objects", "refs"} <= {*folders, *files}
        if ".git" in folders or ".git" in files or bare:
            found.append(Target(Path(place).relative_to(folder).as_posix(), os.path.abspath(place)))
            folders.clear()
        folders.sort()
    return found


def _listed(file: Path) -> list[Target]:
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        text = line.split(" #", 1)[0].strip()
        if text and not text.startswith("#"):
            folder = file.parent / text
            is_folder = "://" not in text and folder.is_dir()
            found.append(Target(text.removesuffix(".git"), os.path.abspath(folder) if is_folder else text))
    return found


def _all_repos(file: Path) -> list[Target]:
    try:
        output = file.parent / json.loads(file.read_text(encoding="utf-8"))["output_dir"]
        repositories = json.loads((output / "repos_filtered.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename}: does not exist; run `all-repos-clone` first") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{file}: is no configuration of all-repos ({error})") from error
    return [
        Target(name, os.path.abspath(output / name) if (output / name).is_dir() else str(address))
        for name, address in sorted(repositories.items())
    ]
