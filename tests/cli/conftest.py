"""A small project with one break site that can be fixed and one that is declined."""

from __future__ import annotations

from pathlib import Path

import pytest

BEFORE = """\
import logging

from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x):
        logger.info(f"got {x.shape[0]} rows")
        seen = logger.warning("twice")
        return x, seen
"""
AFTER = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Model(nn.Module):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            logger.info(f"got {x.shape[0]} rows")
        seen = logger.warning("twice")
        return x, seen
"""
CLEAN = "from torch import nn\n\n\nclass Clean(nn.Module):\n    def forward(self, x):\n        return x + 1\n"


@pytest.fixture
def before() -> str:
    """The model as its author wrote it."""
    return BEFORE


@pytest.fixture
def after() -> str:
    """The model after `graphmend fix`."""
    return AFTER


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `model.py` and `clean.py` below the settings; the current folder."""
    (tmp_path / "pyproject.toml").write_text("[tool.graphmend]\n")
    (tmp_path / "model.py").write_text(BEFORE)
    (tmp_path / "clean.py").write_text(CLEAN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
