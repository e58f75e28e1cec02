"""What a project asks for in `[tool.graphmend]` of its `pyproject.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class SettingsError(Exception):
    """A setting that cannot be used. The text is one line: file, cause, way out."""


@dataclass(frozen=True)
class Settings:
    """Frozen settings of one run. `target_torch` is (major, minor)."""

    root: Path
    select: tuple[str, ...] = ("GM",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    module_bases: tuple[str, ...] = ()
    log_calls: str = "once"
    guards: str = "assert"
    target_torch: tuple[int, int] | None = None
    models: tuple[str, ...] = ()
