"""Pages that lead through the code name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLE = "graphmend_codemod/rules/FAMILY/gmNNN_what_it_finds.py"
_NAMED = re.compile(r"`([\w/]+\.py)`")


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/engine.md", "docs/proofs.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    known = {path.relative_to(_ROOT).as_posix() for path in _ROOT.rglob("*.py") if ".venv" not in path.parts}
    named = set(_NAMED.findall((_ROOT / page).read_text(encoding="utf-8"))) - {_EXAMPLE}
    missing = [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in known)]
    assert sorted(missing) == []
