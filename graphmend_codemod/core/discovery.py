"""Which files a run looks at: what git knows, what the settings leave in, and what can matter at all.

Excludes and vendored folders are left out also when they are named explicitly: pre-commit names every file of a commit,
and a file must get the same answer however it is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from graphmend_codemod.core.findings import Problem
from graphmend_codemod.core.settings import Settings

_VENDORED = frozenset(
    """3rd_party 3rdparty .bzr .direnv .eggs .git .graphmend_cache .hg .ipynb_checkpoints .mypy_cache .nox .pants.d
    .pytest_cache .pytype .ruff_cache .svn .tox .venv __pycache__ __pypackages__ _vendor _vendored buck-out
    node_modules site-packages third-party third_party thirdparty vendor vendored venv""".split()
)
_BUILT = frozenset({"_build", "build", "dist"})
"""Folders of build tools, unless they are packages."""
_GENERATED = re.compile(
    rb"@generated\b|(?i:^#.*\bauto-?generated\b.*\bdo not edit\b)|"
    rb"^[#\s\"']*(?:Code )?[Gg]enerated by (?:the protocol buffer compiler|\S+)",
    re.MULTILINE,
)
_STILL_SOURCE = re.compile(rb"automatically generated from \S+\.py\b|@not-?generated")
_HEAD = 600
_NEAR = 160
_SCRIPTS = re.compile(
    rb"\bjit\.(?:script|export|is_scripting|ScriptModule|_script)|from[ \t]+torch\.jit|import[ \t]+torch\.jit|"
    rb"from[ \t]+torch[ \t]+import[^#\n]*\bjit\b"
)
_IMPORT = re.compile(rb"[ \t]*(?:import|from)[ \t]+[^#\n]*\btorch\b")
_FORWARD = re.compile(rb"[ \t]*def[ \t]+forward\b")


class Discovered(NamedTuple):
    """Python files and notebooks, in order relative to the root with forward slashes; what was named and is neither.

    `named` is true when every path named a file: then only these files are asked about. `foreign` counts the
    files in vendored and build folders that were left out, as far as git lists them.
    """

    files: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    named: bool = False
    notebooks: tuple[str, ...] = ()
    foreign: int = 0


def own_project(settings: Settings, folder: Path) -> Settings:
    """The settings with the folder as the project, or the one above it, where it stands in a vendored or build folder.

    Who names `.venv/lib/.../site-packages/package` wants that package: it is a project of its own, of which the
    one around it knows nothing. A vendored folder itself, and what the settings include, stay parts of that.
    """
    root = os.path.abspath(settings.root)
    relative = relative_path(os.path.abspath(folder), root)
    wanted = Filter(settings.exclude, settings.include, root)
    parts = relative.split("/")
    vendored = [count for count in range(1, len(parts)) if wanted.names_foreign(parts[:count])]
    if not vendored or wanted.names_foreign(parts) or not wanted.is_foreign(f"{relative}/_"):
        return settings
    return settings._replace(root=Path(root, *parts[: vendored[-1] + 1]))


class Filter:
    """Which relative paths the settings and the usual vendored folders leave in.

    `include` names what is looked at although it is in a vendored or build folder; `root` is the project's folder.
    """

    def __init__(self, exclude: Iterable[str], include: Iterable[str] = (), root: str = "") -> None:
        self._exclude = tuple(pattern.rstrip("/") for pattern in exclude if pattern.rstrip("/"))
        self._include = tuple(pattern.rstrip("/") for pattern in include if pattern.rstrip("/"))
        self._root = root
        self._packages: dict[str, bool] = {}

    @cached_property
    def _patterns(self) -> re.Pattern[str] | None:
        return _pattern(self._exclude)

    @cached_property
    def _included(self) -> re.Pattern[str] | None:
        return _pattern(self._include)

    def keeps(self, path: str) -> bool:
        """False for a path that is excluded itself or stands in an excluded, vendored or build folder.

        A pattern is a glob in which `*` also matches `/`; it is held against the path, each folder above it, and each
        of their last parts.
        """
        return not self.is_foreign(path) and not _matches(self._patterns, path.split("/"))

    def is_foreign(self, path: str) -> bool:
        """True for a path in a vendored or build folder that the settings do not include."""
        parts = path.split("/")
        return self._is_foreign(parts) and not _matches(self._included, parts)

    def _is_foreign(self, parts: Sequence[str]) -> bool:
        """True for a path in a folder whose files others write: vendored code, or what a build makes."""
        if not _VENDORED.isdisjoint(parts[:-1]):
            return True
        built = [count for count, part in enumerate(parts[:-1], 1) if part in _BUILT]
        return any(not self._is_package("/".join(parts[:count])) for count in built)

    def names_foreign(self, parts: Sequence[str]) -> bool:
        """True for the path of a folder that is called as vendored and build folders are."""
        return parts[-1] in _VENDORED or (parts[-1] in _BUILT and not self._is_package("/".join(parts)))

    def _is_package(self, folder: str) -> bool:
        if folder not in self._packages:
            self._packages[folder] = os.path.isfile(os.path.join(self._root, folder, "__init__.py"))
        return self._packages[folder]


def _pattern(globs: Sequence[str]) -> re.Pattern[str] | None:
    if not globs:
        return None
    from fnmatch import translate

    return re.compile("|".join(translate(pattern.removeprefix("./")) for pattern in globs))


def _matches(pattern: re.Pattern[str] | None, parts: Sequence[str]) -> bool:
    """True when the path, a folder above it, or the last part of one of these matches."""
    return pattern is not None and any(
        pattern.match("/".join(parts[:count])) or pattern.match(parts[count - 1]) for count in range(1, len(parts) + 1)
    )


def gives_scripts(raw: bytes) -> bool:
    """True for a file that may give something to TorchScript."""
    return _SCRIPTS.search(raw) is not None


def discover(paths: Sequence[Path], settings: Settings) -> Discovered:
    """The Python files at `paths`; those of the whole project when there are none."""
    root = os.path.abspath(settings.root)
    wanted = Filter(settings.exclude, settings.include, root)
    keeps = wanted.keeps
    foreign = 0
    files: set[str] = set()
    problems: list[Problem] = []
    named = bool(paths)
    for path in paths or [Path(root)]:
        absolute = _by_its_own_name(os.path.abspath(path), root)
        relative = relative_path(absolute, root)
        if os.path.isdir(absolute):
            named = False
            every = set(_below(absolute, root, bool(settings.include)))
            kept = {found for found in every if keeps(found)}
            foreign += sum(map(wanted.is_foreign, every - kept))
            files |= kept
        elif not os.path.lexists(absolute):
            problems.append(Problem(relative, "does not exist; check the path"))
        elif not os.path.isfile(absolute):
            problems.append(Problem(relative, "is neither a file nor a folder"))
        elif absolute.endswith((".py", ".ipynb")):
            target = (
                relative_path(os.path.realpath(absolute), os.path.realpath(root))
                if os.path.islink(absolute)
                else relative
            )
            if target.startswith("../") and not relative.startswith("../"):
                problems.append(
                    Problem(relative, "is a symbolic link that leads out of the project; name its target instead")
                )
            elif keeps(relative) and keeps(target):
                files.add(target)
            else:
                foreign += wanted.is_foreign(relative)
        elif not absolute.endswith(".pyi") and _is_python_script(absolute) and keeps(relative):
            files.add(relative)
    notebooks = {path for path in files if path.endswith(".ipynb")}
    return Discovered(tuple(sorted(files - notebooks)), tuple(problems), named, tuple(sorted(notebooks)), foreign)


def _is_python_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            first = file.readline(128)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def relative_path(absolute: str, root: str) -> str:
    """The path from the root, with forward slashes; both are absolute."""
    prefix = os.path.join(root, "")
    inside = absolute[len(prefix) :] if absolute.startswith(prefix) else os.path.relpath(absolute, root)
    return inside.replace(os.sep, "/")


def _by_its_own_name(path: str, root: str) -> str:
    """A path that linked folders lead to, as the project has it without them: one file is looked at once."""
    folder, name = (path, "") if os.path.isdir(path) else os.path.split(path)
    inside = relative_path(os.path.realpath(folder), os.path.realpath(root))
    if inside == ".." or inside.startswith("../"):
        return path
    return os.path.normpath(os.path.join(root, inside, name))


def _below(folder: str, root: str, vendored: bool) -> Iterator[str]:
    names = _from_git(folder)
    for name in _from_walk(folder, vendored) if names is None else names:
        absolute = os.path.join(folder, name)
        if not os.path.islink(absolute) and os.path.isfile(absolute):
            yield relative_path(absolute, root)


def _from_git(folder: str) -> list[str] | None:
    """Python files below `folder` that git tracks or would not ignore; None where git has no answer.

    It has none for a folder that it ignores as a whole. Submodules are not entered.
    """
    found = git_lists(folder, "--cached", "--others", "--exclude-standard", "--", "*.py", "*.ipynb")
    return None if found == [] and _git(folder, "check-ignore", "-q", ".") is not None else found


def git_lists(folder: str, *options: str) -> list[str] | None:
    """What `git ls-files` with these options lists in `folder`, sorted; None where git has no answer."""
    listed = _git(folder, "ls-files", "-z", *options)
    return None if listed is None else sorted({os.fsdecode(name) for name in listed.split(b"\0") if name})


def _git(folder: str, *arguments: str) -> bytes | None:
    """What git prints in `folder`; None where it fails, and where no repository is around the folder.

    Git runs without the environment of a hook, which names another index.
    """
    if not _has_repository(folder):
        return None
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # A partial clone may lack what a sparse index names; what fetches it may be a command of the repository's settings.
    environment["GIT_ALLOW_PROTOCOL"] = "none"
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    except OSError:
        return None
    return found.stdout if found.returncode == 0 else None


def _has_repository(folder: str) -> bool:
    """Whether a folder is in a work tree: git, which takes some milliseconds, has no answer elsewhere."""
    above = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(above, ".git")):
        above, below = os.path.dirname(above), above
        if above == below:
            return False
    return True


def _from_walk(folder: str, vendored: bool) -> Iterator[str]:
    for current, folders, names in os.walk(folder):
        wanted = (name for name in folders if vendored or name not in _VENDORED)
        folders[:] = sorted(name for name in wanted if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".py", ".ipynb")):
                yield os.path.relpath(os.path.join(current, name), folder)


def can_matter(raw: bytes) -> bool:
    """False for text in which no rule can find anything and no class can be a module, by a look at its bytes."""
    return _has_line(raw, b"torch", _IMPORT) or _has_line(raw, b"forward", _FORWARD)


def uses_torch(raw: bytes) -> bool:
    """True when `torch.` or `nn.` is used in what looks like code: worth a word if the file cannot be parsed."""
    return any(_is_used(raw, word) for word in (b"torch.", b"nn."))


def _is_used(raw: bytes, word: bytes) -> bool:
    at = raw.find(word)
    while at >= 0:
        before = raw[max(0, at - _NEAR) : at].rpartition(b"\n")[2]
        if (not before or before[-1] in b" \t=([{,:@") and not any(sign in before for sign in (b"#", b"`", b">>>")):
            return True
        at = raw.find(word, at + len(word))
    return False


def _has_line(raw: bytes, word: bytes, line: re.Pattern[bytes]) -> bool:
    """True when a line that holds the word matches: a search by the pattern alone would take a look at every line."""
    at = raw.find(word)
    while at >= 0:
        if line.match(raw, raw.rfind(b"\n", 0, at) + 1) is not None:
            return True
        end = raw.find(b"\n", at)
        at = raw.find(word, end) if end >= 0 else -1
    return False


def is_generated(raw: bytes) -> bool:
    """True when the first lines mark the file as written by a program and not to be edited.

    A file generated from other Python source of the project, as transformers' `modeling_*.py` are, is edited as well.
    """
    head = raw[:_HEAD]
    return _GENERATED.search(head) is not None and _STILL_SOURCE.search(head) is None
