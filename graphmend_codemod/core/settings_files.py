"""The files that settings come from: where they are, and what is in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from graphmend_codemod.core.errors import SettingsError
from graphmend_codemod.core.source import MOST_CONFIGURED, SourceError, read_bytes


def described(value: object) -> str:
    """What a value is, in the words of an error message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return f'"{value}"' if isinstance(value, str) else f"the number {value}"
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return "a list" if odd is None else f"a list with {described(odd)}"
    return "a table" if isinstance(value, dict) else "a date or time"


def upward(start: Path) -> Iterator[Path]:
    """The folders from a path upwards, itself first if it is one."""
    yield from (start, *start.parents) if os.path.isdir(start) else start.parents


def default_root(start: Path) -> Path:
    """The project's root where no settings name one: the topmost folder of a checkout, or the nearest project in it."""
    found: Path | None = None
    for folder in upward(start):
        if found is None and os.path.isfile(folder / "pyproject.toml"):
            found = folder
        if os.path.exists(folder / ".git"):
            return found or folder
    if found is not None:
        return found
    current = Path.cwd()
    outside = current not in (start, *start.parents)
    return next(each for each in (start, *start.parents) if each.is_dir()) if outside else current


def mentions(path: Path, word: bytes) -> bool:
    """True for a file that holds the word; SettingsError where it cannot be read."""
    return os.path.isfile(path) and word in read(path)


def read(path: Path) -> bytes:
    """The bytes of a file; SettingsError where it cannot be read."""
    try:
        return read_bytes(path, MOST_CONFIGURED, "")
    except SourceError as error:
        raise SettingsError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; SettingsError where it is none."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        data: dict[str, Any] = toml.loads(read(path).decode())
    except ValueError as error:  # both TOMLDecodeError and UnicodeDecodeError are one
        raise SettingsError(f"{path}: is not valid TOML: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise SettingsError(f"{path}: cannot be read as TOML: its values are nested too deeply") from error
    return data
