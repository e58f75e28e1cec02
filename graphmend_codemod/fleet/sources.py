"""Which repositories: a list, a folder of clones, or what all-repos keeps."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.forge.credentials import scrubbed

_WITH_SECRET = re.compile(r"https?://[^/\s]*@|[a-z+]+://[^/\s@]*:[^/\s]*@", re.IGNORECASE)


class SourceError(Exception):
    """Repositories that cannot be listed. The text is one line: file, cause, way out."""


@dataclass(frozen=True)
class Target:
    """One repository: what people call it, and the folder of its clone or its address."""

    name: str
    location: str


def files_in_index(target: Target) -> int:
    """How large a clone is, as far as the size of git's index tells, in bytes; 0 for an address."""
    try:
        return os.stat(os.path.join(target.location, ".git", "index")).st_size
    except OSError:
        return 0


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
    except UnicodeDecodeError as error:
        raise SourceError(f"{source}: is not a list of repositories: it is not UTF-8 text") from error
    unique: dict[str, Target] = {}
    for target in found:
        unique.setdefault(_identity(target.location), target)
    if not unique:
        raise SourceError(f"{source}: names no repository")
    return tuple(unique.values())


def _identity(location: str) -> str:
    """The same for a clone and a link to it, and for an address however it ends."""
    if "://" in location or not os.path.exists(location):
        return location.rstrip("/").removesuffix(".git")
    return os.path.realpath(location).removesuffix(f"{os.sep}.git")


def _clones(folder: Path) -> list[Target]:
    found = []
    for place, folders, files in os.walk(folder):
        bare = {"HEAD", "objects", "refs"} <= {*folders, *files}
        if ".git" in folders or ".git" in files or bare:
            location = os.path.abspath(place)
            name = os.path.basename(location) if Path(place) == folder else Path(place).relative_to(folder).as_posix()
            found.append(Target(name, location))
            folders.clear()
        folders.sort()
    return found


def _listed(file: Path) -> list[Target]:
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.split(" #", 1)[0].strip()
        if _WITH_SECRET.match(text):
            # It would be in rows and on pages.
            raise SourceError(
                f"{file}:{number}: an address must not contain a token or password; set GITHUB_TOKEN or the like"
            )
        if text and not text.startswith("#"):
            folder = file.parent / text
            is_folder = "://" not in text and os.path.isdir(folder)
            found.append(Target(text.removesuffix(".git"), os.path.abspath(folder) if is_folder else text))
    return found


def _all_repos(file: Path) -> list[Target]:
    try:
        output = file.parent / json.loads(file.read_text(encoding="utf-8"))["output_dir"]
        listed = sorted(json.loads((output / "repos_filtered.json").read_text(encoding="utf-8")).items())
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename}: does not exist; run `all-repos-clone` first") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{file}: is not an all-repos configuration ({error})") from error
    return [
        Target(name, os.path.abspath(output / name) if (output / name).is_dir() else scrubbed(str(address), None))
        for name, address in listed
    ]
