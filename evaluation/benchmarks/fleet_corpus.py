"""The repositories that the fleet is measured on: generated ones, and clones that are there already."""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

from graphmend_codemod.fleet.jobs import CHECK, Options, Order
from graphmend_codemod.fleet.snapshot import snapshot
from graphmend_codemod.fleet.sources import Target, find_targets

_LAYERS = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Block{number}(nn.Module):
    def __init__(self, width: int = {width}) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.inner(x))
{body}        return y + x
"""
_BODIES = (
    "",
    "        if y.abs().max() > {width}:\n            y = y.clamp(max={width})\n",
    '        logger.warning("slow path")\n',
    "        if y.isnan().any():\n            raise ValueError('nan')\n",
    "        for _ in range(2):\n            y = torch.relu(y)\n",
)
_SCRIPT = "import argparse\n\n\ndef main() -> None:\n    parser = argparse.ArgumentParser()\n    parser.parse_args()\n"


@dataclass(frozen=True)
class Repositories:
    """Clones to measure with. `files` counts Python files, `size` their bytes."""

    targets: tuple[Target, ...]
    files: int
    size: int


def generate(folder: Path, count: int) -> None:
    """Write `count` repositories of 6 to 40 files, with sites in about every second file of models."""
    chance = random.Random(0)
    for number in range(count):
        root = folder / f"generated-{number:04d}"
        for index in range(chance.randint(4, 30)):
            body = chance.choice(_BODIES)
            width = chance.choice((16, 64, 256))
            text = _LAYERS.format(number=index, width=width, body=body.format(width=width))
            _write(root / "models" / f"block_{index}.py", text)
        for index in range(chance.randint(2, 10)):
            _write(root / "scripts" / f"run_{index}.py", _SCRIPT)
        _write(root / "README.md", f"# {root.name}\n")
        # Not code: a fetch leaves it out.
        (root / "weights.bin").write_bytes(chance.randbytes(200_000))
        git(root, "init", "--quiet", "--initial-branch=main")
        git(root, "add", "--all")
        who = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@localhost")
        git(root, *who, "commit", "--quiet", "-m", root.name)


def found_in(*folders: Path) -> tuple[Target, ...]:
    """All clones below some folders, named after the folder that holds them."""
    return tuple(
        Target(f"{folder.name}/{target.name}", target.location) for folder in folders for target in find_targets(folder)
    )


def exported(targets: tuple[Target, ...], folder: Path) -> tuple[list[Path], Repositories]:
    """The files that a check reads, one folder a repository, and what they amount to."""
    roots, files, size = [], 0, 0
    for number, target in enumerate(targets):
        inside = folder / str(number)
        inside.mkdir(parents=True)
        root = snapshot(Order(target.name, target.location, Options(CHECK)), inside)
        roots.append(root)
        for place, _, names in os.walk(root):
            found = [os.path.getsize(os.path.join(place, name)) for name in names if name.endswith(".py")]
            files += len(found)
            size += sum(found)
    return roots, Repositories(targets, files, size)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(folder: Path, *arguments: str) -> None:
    """A git command without hooks."""
    subprocess.run(["git", "-c", "core.hooksPath=/dev/null", *arguments], cwd=folder, check=True, capture_output=True)
