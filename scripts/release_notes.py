"""The notes of a release: its section of CHANGELOG.md. Fails unless tag, package and changelog have one version.

python scripts/release_notes.py v1.2.3
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(tag: str, root: Path = ROOT) -> str:
    """The section of a version; ValueError, in one line, where something else is released than was written."""
    version = tag.removeprefix("v")
    for file, pattern in {
        "pyproject.toml": r'(?m)^version = "([^"]+)"',
        "graphmend_codemod/__init__.py": r'(?m)^__version__ = "([^"]+)"',
    }.items():
        found = re.search(pattern, (root / file).read_text(encoding="utf-8"))
        if found is None or found[1] != version:
            raise ValueError(f"{file}: has version {found and found[1]}, the tag is {tag}; change one of them")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"(?ms)^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog)
    if section is None or not section[1].strip():
        raise ValueError(f"CHANGELOG.md: has no section `## {version}` with a line in it; rename `## Unreleased`")
    return section[1].strip() + "\n"


def main() -> int:
    """Print the notes of the tag that is given; 2 with one line on standard error where there are none."""
    if len(sys.argv) != 2:
        print("usage: release_notes.py TAG", file=sys.stderr)
        return 2
    try:
        print(notes(sys.argv[1]), end="")
    except ValueError as error:
        print(f"release_notes: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
